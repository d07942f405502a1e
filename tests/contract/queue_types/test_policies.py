"""What a queue heeds from the moment at which its policies say it."""

from __future__ import annotations

import pytest

from services.queue.machine import turn
from services.queue.machine.entry import Entry
from services.queue.machine.features.attempts import FEATURE as ATTEMPTS
from services.queue.machine.features.sent_on import note_of
from services.queue.machine.journal_draft import Note, NotePlace
from services.queue.machine.message import Message
from services.rpc import queue_pb2 as pb
from tests.support.messages import facts
from tests.support.queue_machine import Machine, Make


def clock(machine: Machine, now: int) -> list[int]:
    """How many dead letters there are after each look of the clock, until it has nothing to do."""
    found = []
    while 0 < machine.queue.deadline() <= now:
        machine.queue.expire(now)
        machine.queue.dispatch(now)
        found.append(len(machine.dead()))
    return found


def test_a_shorter_length_drops_what_is_too_much_in_turns(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the head, as dead letters, no more in a turn than others can wait for; then newcomers drive out the rest."""
    monkeypatch.setattr(turn, "AT_ONCE", 10)
    machine = make(dead_letter_exchange="dlx")
    machine.publish(28)
    machine.adopt({"max-length": 3})
    assert machine.context.timed == {1}
    assert clock(machine, 1) == [10, 10, 5]
    machine.publish(1)
    assert [reason for _, reason in machine.dead()] == ["maxlen"]
    machine.adopt({})
    machine.publish(5)
    assert machine.queue.ready_count == 8


@pytest.mark.parametrize(("overflow", "refused"), [("reject-publish", 2), ("drop-head", 0), ("none", 0)])
def test_another_overflow_policy(make: Make, overflow: str, refused: int) -> None:
    """It counts for what is published from then on."""
    machine = make()
    machine.adopt({"max-length": 1, "overflow": overflow})
    assert sum(count for _, count, _ in machine.publish(3)) == refused


def test_publishers_are_held_back_and_let_go(make: Make) -> None:
    """As the overflow policy comes and goes; the shell is told to look when it comes."""
    machine = make()
    looked: list[int] = []
    machine.context.on_more = looked.append
    machine.publish(3)
    machine.adopt({"max-length": 1, "overflow": "producer-flow-control"})
    assert looked == [1]
    assert machine.queue.flow is not None
    assert machine.queue.flow.is_overfull()
    machine.adopt({})
    assert machine.queue.flow is None
    machine.publish(1)
    assert looked == [1]


def test_a_time_to_live_is_for_what_comes(make: Make) -> None:
    """As in RabbitMQ: what was there waits on, and keeps nobody behind it from expiring at its time."""
    machine = make(dead_letter_exchange="dlx")
    machine.publish(1)
    machine.adopt({"message-ttl": 100})
    machine.publish(1)
    machine.adopt({"message-ttl": 10})
    machine.publish(1)
    assert clock(machine, 10) == [1]
    assert clock(machine, 100) == [1]
    assert machine.queue.ready_count == 1


def test_disuse_is_counted_from_then_on(make: Make) -> None:
    """However long nobody has used it before."""
    machine = make()
    machine.adopt({"expires": 100}, now=5000)
    assert machine.queue.deadline() == 5100
    assert not machine.queue.use.expired(5099)
    assert machine.queue.use.expired(5100)
    machine.adopt({}, now=5050)
    assert not machine.queue.use.expired(9999)


def test_dead_letters_and_attempts(make: Make) -> None:
    """An exchange for dead letters, and a limit for attempts, count for what is delivered already."""
    machine = make()
    machine.publish(1)
    machine.consumer()
    machine.link.taken()
    machine.adopt({"dead-letter-exchange": "dlx", "delivery-limit": 0})
    machine.queue.settle(pb.RELEASE, [1], 0)
    assert machine.dead() == [(1, "delivery_limit")]


@pytest.mark.parametrize(("own", "policy", "counts"), [(2, 5, 2), (5, 2, 2), (None, 2, 2), (5, None, 5)])
def test_the_lower_of_two_lengths(make: Make, own: int | None, policy: int | None, counts: int) -> None:
    """The queue's own, or that of its policies."""
    machine = make(**({} if own is None else {"max_length": own}))
    machine.adopt({} if policy is None else {"max-length": policy})
    machine.publish(9)
    assert machine.queue.ready_count == counts


def test_its_own_argument_goes_before_a_policy(make: Make) -> None:
    """Where it is no limit."""
    machine = make(dead_letter_exchange="own", max_length=1)
    machine.adopt({"dead-letter-exchange": "policy", "overflow": "reject-publish"})
    assert machine.queue.options.dead_letter_exchange == "own"
    assert machine.queue.options.overflow == "reject-publish"


def test_what_was_noted_before_goes_with_its_message(make: Make) -> None:
    """Though policies say nothing any more of dead letters, and of attempts."""
    machine = make(durable=True)
    machine.adopt({"dead-letter-exchange": "dlx", "delivery-limit": 5})
    entry = Entry(Message(1, facts("e"), b"", b""), 1)
    attempts = Note(1, ATTEMPTS, (1).to_bytes(8, "little") + (3).to_bytes(4, "little"))
    notes = [(attempts, NotePlace(100, 0)), (note_of(1, 1, [7]), NotePlace(100, 1))]
    machine.queue.features.recall(notes, [entry])
    machine.queue.recover([entry], 0)
    machine.adopt({})
    machine.consumer()
    assert machine.link.uids() == [1]
    machine.queue.settle(pb.REJECT, [1], 0)
    assert sorted(machine.draft.dequeues[100]) == [0, 1]
