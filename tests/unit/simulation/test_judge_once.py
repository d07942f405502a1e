"""What the judge says of queues that take each key once."""

from __future__ import annotations

import pytest

from tests.support.written_history import Written

TWICE = "what has a key is taken once"
LOST = "nothing promised is lost"


@pytest.mark.parametrize(("given", "broken"), [("m", set()), ("mn", {TWICE}), ("n", {LOST}), ("", {LOST})])
def test_one_of_a_key(told: Written, given: str, broken: set[str]) -> None:
    """The first is there, and no other."""
    told.change("queue", queue="o", durable=True, arguments={"x-message-deduplication": True})
    sent = {name: told.publish(name, "o", headers={"x-deduplication-header": 7}) for name in "mn"}
    consumer = told.consumer("o")
    consumer.tag = "drain"
    for name in given:
        told.drain(sent[name], "o", consumer=consumer)
    assert told.broken() == broken


def test_other_queues(told: Written) -> None:
    """They take all."""
    told.change("queue", queue="o", durable=True, arguments={})
    sent = [told.publish(name, "o", headers={"x-deduplication-header": 7}) for name in "mn"]
    for each in sent:
        told.drain(each, "o")
    assert told.broken() == set()


@pytest.mark.parametrize(
    ("outcome", "early", "broken"),
    [("committed", True, set()), ("unknown", True, set()), ("unknown", False, set()), ("committed", False, {LOST})],
)
def test_the_commit_counts(told: Written, outcome: str, early: bool, broken: set[str]) -> None:
    """What was said in a transaction has no key before: another one may come meanwhile, though this was routed."""
    told.change("queue", queue="o", durable=True, arguments={"x-message-deduplication": True})
    one = told.publish("m", "o", confirmed=False, headers={"x-deduplication-header": 7})
    one.bound = told.history.tick()
    if not early:
        told.commit(one, outcome=outcome)
    other = told.publish("n", "o", headers={"x-deduplication-header": 7})
    if early:
        told.commit(one, outcome=outcome)
    told.drain(other, "o")
    assert told.broken() == broken
