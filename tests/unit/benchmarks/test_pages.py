"""Pages of a long list."""

from __future__ import annotations

from benchmarks.pages.asking import paths
from benchmarks.pages.probe import age
from services.mgmt.model.queue import Queue


def test_each_statistic_is_asked_for() -> None:
    """Of both APIs, in turns."""
    asked = paths()
    assert [whose for whose, _ in asked[:3]] == ["Broker-J's", "RabbitMQ's", "Broker-J's"]
    for name in (*Queue.statistics, "messages_ready", "memory"):
        assert any(name in path for _, path in asked)


def test_an_age() -> None:
    """What is said to be there was so at the latest when the next was published, and not before the last was."""
    published = [10.0, 11.0, 12.0]
    assert [age(published, there, 13.0) for there in range(4)] == [3.0, 3.0, 2.0, 1.0]
