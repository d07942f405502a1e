"""What the judge says of queues in another order than that of arrival."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.history import Sent
from tests.support.written_history import Written

ORDER = "queues keep their order"
LAST = "the last of a key is kept"
LOST = "nothing promised is lost"


def _emptied(told: Written, sent: list[Sent]) -> set[str]:
    """What is broken when a queue gives these as it is emptied, in this order."""
    consumer = told.consumer("o")
    consumer.tag = "drain"
    for each in sent:
        told.drain(each, "o", consumer=consumer)
    return told.broken()


def _queue(told: Written, **arguments: Any) -> None:
    told.change(
        "queue", queue="o", durable=True, arguments={name.replace("_", "-"): v for name, v in arguments.items()}
    )


@pytest.mark.parametrize(("ranks", "broken"), [(["", 12, 7, "a", "a"], set()), (["a", 7], {ORDER})])
def test_sorted(told: Written, ranks: list[Any], broken: set[str]) -> None:
    """By the text of a header; without it first."""
    told.change("queue", queue="o", durable=True, arguments={"qpid.queue_sort_key": "rank"})
    sent = [told.publish(f"m{at}", "o", headers={"rank": rank}) for at, rank in enumerate(ranks)]
    assert _emptied(told, sent) == broken


def test_sorted_ties(told: Written) -> None:
    """By arrival where the key is the same."""
    told.change("queue", queue="o", durable=True, arguments={"qpid.queue_sort_key": "rank"})
    sent = [told.publish(name, "o", headers={"rank": "a"}) for name in "mn"]
    assert _emptied(told, sent[::-1]) == {"first deliveries are in order"}


@pytest.mark.parametrize(
    ("argument", "priorities", "broken"),
    [
        ({"x_max_priority": 5}, [9, 5, 5, 0], set()),
        ({"x_max_priority": 5}, [4, 9], {ORDER}),
        ({"x_qpid_priorities": 10}, [9, 8, 0], set()),
        ({"x_qpid_priorities": 2}, [5, 9, 4, 0], set()),
        ({"x_qpid_priorities": 2}, [4, 5], {ORDER}),
        ({"x_qpid_priorities": 4}, [6, 5, 4, 3, 0], set()),
    ],
)
def test_priorities(told: Written, argument: dict[str, int], priorities: list[int], broken: set[str]) -> None:
    """The highest first; with few levels the middle priorities are told apart."""
    _queue(told, **argument)
    sent = [told.publish(f"m{at}", "o", priority=priority) for at, priority in enumerate(priorities)]
    assert _emptied(told, sent) == broken


@pytest.mark.parametrize(("kept", "broken"), [("n", set()), ("m", {LOST}), ("mn", {LAST})])
def test_last_value(told: Written, kept: str, broken: set[str]) -> None:
    """The last one of a key is there, alone; what has none stays."""
    told.change("queue", queue="o", durable=True, arguments={"qpid.last_value_queue_key": "rank"})
    sent = {name: told.publish(name, "o", headers={"rank": "a"}) for name in "mn"}
    plain = told.publish("p", "o")
    assert _emptied(told, [*(sent[name] for name in kept), plain]) == broken
