"""What the benchmark declares queues with is what they heed."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import GROUPS, _scenarios
from benchmarks.behaviours import BEHAVIOURS
from benchmarks.load import Destination
from benchmarks.scenarios import SCENARIOS
from benchmarks.wire import Address
from services.common.arguments.reading import checked
from services.common.message import field_table

_WITHOUT = {"queue-plain", "queue-own-ttl", "queue-without-once", "queue-consumer-priority"}


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_its_arguments_say_something(name: str) -> None:
    """Each is known, and of the right type; what has none is there to be compared with, or its messages differ."""
    table, end = field_table.decode_at(BEHAVIOURS[name][1].stream.arguments, 0)
    assert end == len(BEHAVIOURS[name][1].stream.arguments)
    assert bool(checked(table)) is bool(table) is (name not in _WITHOUT)


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_its_messages_have_one_length(name: str) -> None:
    """By which they are counted."""
    destination = Destination(Address("localhost", 5672), BEHAVIOURS[name][1])
    assert len({len(destination.message(0, number, b"x")) for number in range(300)}) == 1


def test_all_of_them_by_one_word() -> None:
    """Which stands for no other scenario."""
    assert _scenarios(["behaviours"]) == list(BEHAVIOURS)
    assert not GROUPS.keys() & SCENARIOS.keys()
