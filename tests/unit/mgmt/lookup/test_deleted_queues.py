"""Copies of messages in queues that were deleted while nobody owned their partition."""

from __future__ import annotations

import pytest

from services.mgmt.lookup.lookup import LookUp
from tests.support.ledger_files import MS, LedgerFiles, uid


@pytest.mark.parametrize("others", [[], ["other"]])
async def test_dropped_with_a_queue_that_is_gone(ledger: LedgerFiles, look_up: LookUp, others: list[str]) -> None:
    """Whoever has the partition next does not know what a deleted queue was called: the message's copy that was in this
    partition has ended, and no other.
    """
    ledger.stage("received", uid(1))
    for queue, partition in [("q", 7), *((queue, 8) for queue in others)]:
        ledger.stage("routed", uid(1), at=MS, queue=queue, partition=partition)
        ledger.stage("enqueued", uid(1), at=2 * MS, queue=queue, partition=partition, epoch=1)
    ledger.stage("recovered", uid(1), at=3 * MS, queue="", partition=7, epoch=2, reason="journal")
    ledger.stage("dropped", uid(1), at=4 * MS, queue="", service="queue", partition=7, epoch=2, reason="queue_deleted")
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    [message] = journey.messages
    assert (message.steps[-1].stage, message.steps[-1].queue, message.ended) == ("dropped", "q", not others)
    assert [(copy.queue, copy.state, copy.ended) for copy in message.copies] == [
        ("q", "dropped", True),
        *((queue, "enqueued", False) for queue in others),
    ]


async def test_dropped_with_one_of_two_queues_that_are_gone(ledger: LedgerFiles, look_up: LookUp) -> None:
    """Where a message had several copies in the partition, it is not known which has ended: either may have."""
    ledger.stage("received", uid(1))
    for queue in ("a", "b"):
        ledger.stage("enqueued", uid(1), at=2 * MS, queue=queue, partition=7, epoch=1)
    ledger.stage("dropped", uid(1), at=4 * MS, queue="", service="queue", partition=7, epoch=2, reason="queue_deleted")
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    [message] = journey.messages
    assert (message.ended, [copy.ended for copy in message.copies]) == (False, [False, False])
    assert [(copy.fate, copy.gap) for copy in message.copies] == [("unknown", None)] * 2


@pytest.mark.parametrize("other", ["settled", "recovered"])
async def test_the_other_copy_is_known(ledger: LedgerFiles, look_up: LookUp, other: str) -> None:
    """One that had ended before, or that the next owner has, is not what was in the deleted queue."""
    ledger.stage("received", uid(1))
    for queue in ("a", "b"):
        ledger.stage("enqueued", uid(1), at=2 * MS, queue=queue, partition=7, epoch=1)
    ledger.stage(other, uid(1), at=3 * MS, queue="b", partition=7, epoch=1 if other == "settled" else 2)
    ledger.stage("dropped", uid(1), at=4 * MS, queue="", service="queue", partition=7, epoch=2, reason="queue_deleted")
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    copies = [(copy.queue, copy.state, copy.ended) for copy in journey.messages[0].copies]
    assert copies == [("a", "dropped", True), ("b", other, other == "settled")]


@pytest.mark.parametrize(
    ("copies", "epochs", "ended"),
    [("ab", (2, 2), "ab"), ("abc", (2, 2), ""), ("ab", (2, 3), ""), ("ab", (2, 2, 2), "ab")],
    ids=["both", "two of three", "perhaps the same, by two owners", "one more, of which nothing is known"],
)
async def test_dropped_with_two_queues_that_are_gone(
    ledger: LedgerFiles, look_up: LookUp, copies: str, epochs: tuple[int, ...], ended: str
) -> None:
    """The owner drops what was in each by itself: if it has dropped as many as there are copies, all have ended."""
    ledger.stage("received", uid(1))
    for queue in copies:
        ledger.stage("enqueued", uid(1), at=2 * MS, queue=queue, partition=7, epoch=1)
    for number, epoch in enumerate(epochs):
        owner = {"service": "queue", "partition": 7, "epoch": epoch}
        ledger.stage("dropped", uid(1), at=(4 + number) * MS, queue="", reason="queue_deleted", **owner)
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    [message] = journey.messages
    assert (message.ended, [copy.queue for copy in message.copies if copy.ended]) == (bool(ended), [*ended])
    assert {copy.fate for copy in message.copies} == ({""} if ended else {"unknown"})
    assert [step.queue for step in message.steps if step.stage == "dropped"] == [
        *ended, *[""] * (len(epochs) - len(ended))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("again", "states"),
    [
        (None, [("a", "dropped", ""), ("b", "dropped", "lost (transient)")]),
        (2, [("a", "enqueued", "unknown"), ("b", "enqueued", "unknown")]),
    ],
    ids=["gone", "sent again"],
)
async def test_one_copy_was_let_go(
    ledger: LedgerFiles, look_up: LookUp, again: int | None, states: list[tuple[str, str, str]]
) -> None:
    """What went with the partition, in memory only, is not what the next owner has dropped; unless it came again."""
    ledger.stage("received", uid(1))
    for queue in ("a", "b"):
        ledger.stage("enqueued", uid(1), at=2 * MS, queue=queue, partition=7, epoch=1)
    ledger.stage("dropped", uid(1), at=3 * MS, queue="b", partition=7, epoch=1, reason="no_owner")
    if again:
        ledger.stage("enqueued", uid(1), at=4 * MS, queue="b", partition=7, epoch=again)
    owner = {"service": "queue", "partition": 7, "epoch": 3}
    ledger.stage("dropped", uid(1), at=5 * MS, queue="", reason="queue_deleted", **owner)
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    assert [(copy.queue, copy.state, copy.fate) for copy in journey.messages[0].copies] == states


async def test_no_copy_is_known(ledger: LedgerFiles, look_up: LookUp) -> None:
    """The drop is the message's end, then."""
    ledger.stage("received", uid(1))
    ledger.stage("dropped", uid(1), at=4 * MS, queue="", service="queue", partition=7, epoch=2, reason="queue_deleted")
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    assert (journey.messages[0].ended, journey.messages[0].copies, journey.gaps) == (True, [], [])


@pytest.mark.parametrize(("epoch", "ended"), [(2, ("settled", "accepted")), (1, ("dropped", ""))])
async def test_a_former_owner_that_stood_still(
    ledger: LedgerFiles, look_up: LookUp, epoch: int, ended: tuple[str, str]
) -> None:
    """It drops what it had when it goes on, though the message has ended for the next owner: as that says."""
    place = {"queue": "q", "partition": 7}
    ledger.stage("received", uid(1))
    ledger.stage("enqueued", uid(1), at=MS, epoch=1, **place)
    ledger.stage("delivered", uid(1), at=2 * MS, epoch=epoch, instance=f"queue-{epoch}", **place)
    ledger.stage("settled", uid(1), at=3 * MS, epoch=epoch, outcome="accepted", instance=f"queue-{epoch}", **place)
    ledger.stage("dropped", uid(1), at=9 * MS, epoch=1, reason="queue_deleted", **place)
    ledger.file()
    [copy] = (await look_up.trace(str(uid(1)))).journeys[0].messages[0].copies
    assert (copy.state, copy.outcome, copy.ended) == (*ended, True)
