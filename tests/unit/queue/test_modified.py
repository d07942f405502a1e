"""AMQP 1.0, part 3, section 3.4.5: a queue whose consumers modify what they give back."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.message import format_named
from services.common.message.amqp_1_0 import added
from services.common.message.amqp_1_0.values import Symbol, ULong
from services.common.selectors.selector import selector
from services.queue.machine.consumers import Consumer
from services.queue.machine.delivery import not_for
from services.queue.machine.delivery.interest import Interest
from services.queue.machine.entry import Entry, JournalPart
from services.queue.machine.features.annotated import FEATURE
from services.queue.machine.journal_draft import Note, NotePlace
from services.queue.machine.message import Message
from services.queue.machine.modifying import Change
from services.rpc import queue_pb2 as pb
from tests.support.messages import facts
from tests.support.queue_machine import FakeLink, Machine

AMQP_0_9 = format_named(facts("").format)
LATE = added.written({Symbol("x-why"): "late"})


def annotations(properties: bytes) -> dict[object, object]:
    return dict(added.apart(AMQP_0_9.headers(properties)).annotations)


def two(machine: Machine) -> tuple[Consumer, Consumer, FakeLink]:
    """Consumers, of which the second one comes later, and has a link of its own."""
    other = FakeLink()
    first = machine.consumer(messages=10)
    return first, machine.consumer(messages=0, link=other), other


def test_annotations_come_with_it() -> None:
    """Key by key, onto those of before; and other queues' messages stay as they are."""
    machine = Machine()
    machine.publish(2)
    machine.consumer()
    before = list(machine.link.deliveries.properties)
    for said in ({"x-why": "late", "x-who": "me"}, {"x-why": "later"}):
        machine.link.taken()
        change = Change(added.written({Symbol(key): value for key, value in said.items()}))
        assert machine.queue.settle(pb.RETURN, [1], 0, change) == ""
    assert annotations(machine.link.deliveries.properties[0]) == {"x-why": "later", "x-who": "me"}
    assert machine.link.deliveries.runs[0].attempts == 0
    machine.link.taken()
    machine.queue.settle(pb.RELEASE, [2], 0)
    assert machine.link.deliveries.properties == before[1:]


def test_what_it_takes() -> None:
    """Memory that annotations take is given back with their message."""
    machine = Machine(durable=True)
    machine.consumer()
    machine.publish(3, persistent=True)
    kept = machine.queue.holding.size
    machine.queue.settle(pb.RELEASE, [1, 2, 3], 0, Change(LATE))
    assert machine.queue.holding.size > kept
    machine.queue.settle(pb.ACCEPT, [1, 2], 0)
    machine.queue.end(durable=True)
    assert (machine.queue.holding.size, machine.account.used) == (0, 0)


@pytest.mark.parametrize("durable", [False, True])
def test_what_those_take_that_were_not_put_back(durable: bool) -> None:
    """Nor do notes of messages that another process takes over before the queue has them again take memory."""
    machine = Machine(durable=True)
    note = Note(machine.queue.options.queue_id, FEATURE, (1).to_bytes(8, "little") + LATE)
    entry = Entry(Message(1, facts(""), b"", b""), 0, part=JournalPart(1, 0))
    machine.queue.features.recall([(note, NotePlace(1, 1))], [entry])
    assert machine.account.used == len(LATE)
    machine.queue.end(durable=durable)
    assert machine.account.used == 0


def test_too_many_annotations() -> None:
    """They go back without these, and who says so hears why."""
    machine = Machine()
    machine.publish(1)
    machine.consumer()
    much = added.written({Symbol("a"): "x" * (added.MOST - 100)})
    assert machine.queue.settle(pb.RELEASE, [1], 0, Change(much)) == ""
    why = machine.queue.settle(pb.RELEASE, [1], 0, Change(added.written({Symbol("b"): "y" * 100})))
    assert "may gather" in why
    assert set(annotations(machine.link.deliveries.properties[-1])) == {"a"}
    assert machine.link.deliveries.runs[-1].attempts == 2


@pytest.mark.parametrize("kind", ["classic", "priority", "sorted", "last-value"])
def test_not_for_this_consumer(kind: str) -> None:
    """It is given what comes behind, and not this one; others are given this one at its place."""
    machine = Machine(kind)
    machine.publish(3)
    first, second, other = two(machine)
    waiting = machine.link.uids()
    assert machine.queue.settle(pb.RELEASE, waiting[:2], 0, Change(not_for=first)) == ""
    assert machine.link.uids() == []
    machine.publish(1)
    machine.queue.credit(first, 10, 1 << 30, 0)
    assert machine.link.uids() == [4]
    machine.queue.credit(second, 10, 1 << 30, 0)
    assert sorted(other.uids()) == sorted(waiting[:2])
    machine.queue.settle(pb.RELEASE, [waiting[0]], 0)
    assert other.uids() == [waiting[0]]


def test_the_only_consumer() -> None:
    """The message waits, is counted, and got by who asks for one; a drain does not wait for it."""
    machine = Machine()
    machine.publish(1)
    consumer = machine.consumer(messages=5)
    machine.link.taken()
    machine.queue.settle(pb.RETURN, [1], 0, Change(not_for=consumer))
    assert (machine.link.uids(), machine.queue.ready_count) == ([], 1)
    assert machine.queue.has_offered_all(consumer)
    entry = machine.queue.get(machine.link, 0, settled=False)
    assert entry
    assert entry.message.uid == 1
    machine.queue.settle(pb.RELEASE, [1], 0)
    assert machine.link.uids() == []
    assert machine.consumer(messages=1).messages == 0
    assert machine.link.uids() == [1]


def test_as_long_as_it_lives() -> None:
    """Whoever comes after it is another one, and what was remembered of it is gone."""
    machine = Machine()
    machine.publish(2)
    consumer = machine.consumer(messages=5)
    machine.queue.settle(pb.RELEASE, [1, 2], 0, Change(not_for=consumer))
    before = machine.account.used
    machine.link.taken()
    machine.queue.detach(consumer, 0)
    assert machine.account.used < before
    machine.consumer(messages=5)
    assert machine.link.uids() == [1, 2]


def test_in_columns_again() -> None:
    """Once no such message is left its consumer takes whatever is next, as it did before."""
    machine = Machine()
    machine.publish(2)
    first, second, other = two(machine)
    machine.queue.settle(pb.RELEASE, [1, 2], 0, Change(not_for=first))
    assert first.chooses
    machine.queue.credit(second, 2, 1 << 30, 0)
    assert other.uids() == [1, 2]
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert first.chooses
    machine.queue.settle(pb.ACCEPT, [2], 0)
    assert not first.chooses
    machine.link.taken()
    machine.publish(3)
    assert machine.link.uids() == [3, 4, 5]
    assert not machine.queue._delivery.chooses


def test_besides_a_selector() -> None:
    """What else it wants, or does not, stays."""
    machine = Machine()
    machine.publish_with("n", 1, 2, 1)
    consumer = machine.consumer(messages=5, interest=Interest(selector("n = 1")))
    assert machine.link.uids() == [1, 3]
    machine.queue.settle(pb.RELEASE, [1, 3], 0, Change(not_for=consumer))
    assert machine.link.uids() == []
    machine.publish_with("n", 1, 2)
    assert machine.link.uids() == [4]
    assert consumer.chooses


def test_two_that_do_not_want_it() -> None:
    """A third one gets it."""
    machine = Machine()
    machine.publish(1)
    first, second, other = two(machine)
    machine.queue.settle(pb.RELEASE, [1], 0, Change(not_for=first))
    machine.queue.credit(second, 5, 1 << 30, 0)
    machine.queue.settle(pb.RELEASE, [1], 0, Change(not_for=second))
    machine.link.taken()
    other.taken()
    machine.consumer(messages=1, link=(third := FakeLink()))
    assert (third.uids(), machine.link.uids(), other.uids()) == ([1], [], [])


def test_too_many_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """They go back all the same, and who says so hears why."""
    monkeypatch.setattr(not_for, "MOST", 2)
    machine = Machine()
    machine.publish(3)
    consumer = machine.consumer(messages=3)
    assert machine.queue.settle(pb.RELEASE, [1, 2], 0, Change(not_for=consumer)) == ""
    assert "undeliverable here" in machine.queue.settle(pb.RELEASE, [3], 0, Change(not_for=consumer))
    assert machine.queue.ready_count == 3


def test_what_it_said_before_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done with, most likely, keeps it from saying nothing more; what waits is not forgotten."""
    monkeypatch.setattr(not_for, "MOST", 3)
    machine = Machine()
    machine.publish(3)
    consumer = machine.consumer(messages=0)
    assert machine.queue.modifying.refuse(consumer, [91, 3, 92], here=False)
    machine.queue.credit(consumer, 9, 1 << 30, 0)
    assert machine.link.uids() == [1, 2]
    for _ in range(2):  # kept settlements come twice
        assert machine.queue.settle(pb.RELEASE, [1, 2], 0, Change(not_for=consumer)) == ""
        machine.queue.get(machine.link, 0, settled=False)
    machine.publish(1)
    assert "undeliverable here" in machine.queue.settle(pb.RELEASE, [4], 0, Change(not_for=consumer))
    machine.queue.detach(consumer, 0)
    assert machine.queue._entries.not_for
    assert not machine.queue._entries.not_for._by_uid


def test_not_for_this_consumer_before_it_has_come() -> None:
    """It had it from a former owner, and its publisher sends it again only now."""
    machine, other = Machine(), FakeLink()
    consumer = machine.consumer(held=[1], again=True)
    assert machine.queue.settle(pb.RELEASE, [1], 0, Change(not_for=consumer)) == ""
    machine.publish(2)
    assert machine.link.uids() == [2]
    machine.consumer(link=other)
    assert other.uids() == [1]


def test_of_what_is_gone() -> None:
    """Nothing is to be remembered of it: its consumer does not choose."""
    machine = Machine()
    machine.publish(1)
    consumer = machine.consumer(messages=5)
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert machine.queue.settle(pb.RELEASE, [1], 0, Change(not_for=consumer)) == ""
    assert not consumer.chooses
    assert machine.queue._entries.not_for is None


def test_while_it_waits_immediate_messages_pass() -> None:
    """A message that is not for the only consumer keeps no other from it."""
    machine = Machine()
    machine.publish(1)
    consumer = machine.consumer(messages=5)
    machine.link.taken()
    machine.queue.settle(pb.RELEASE, [1], 0, Change(not_for=consumer))
    assert machine.publish(1, immediate=True) == []
    assert machine.link.uids() == [2]


def test_a_ring() -> None:
    """What annotations take counts until their message is gone, and not a byte longer."""
    machine = Machine(overflow="ring", max_length_bytes=2000)
    machine.consumer(messages=100)
    ring = machine.queue._entries.ring
    assert ring
    machine.publish(1)
    size = ring.size
    machine.queue.settle(pb.RELEASE, [1], 0, Change(added.written({Symbol("a"): "x" * 900})))
    assert ring.size > size + 900
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert ring.size == 0
    machine.publish(1, body=b"x" * 1000)
    machine.publish(1)
    machine.queue.settle(pb.RELEASE, [2], 0, Change(added.written({Symbol("a"): "x" * 1000})))
    assert [entry.message.uid for entry in machine.queue.entries()] == [3]


def test_a_sorted_ring() -> None:
    """Annotations that are its key give a message another place; it leaves the ring all the same."""
    machine = Machine("sorted", overflow="ring", max_length=2, table={"qpid.queue_sort_key": "n"})
    machine.consumer(messages=100)
    machine.publish_with("n", "b")
    machine.queue.settle(pb.RELEASE, [1], 0)
    [entry] = machine.queue.entries()
    was = entry.message
    entry.message = Message(1, was.facts, AMQP_0_9.with_headers(was.properties, {"n": "a"}), b"", was.received)
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert machine.queue._entries.ring
    assert (machine.queue._entries.ring.size, list(machine.queue._entries.ring._rows)) == (0, [])


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("names", [Symbol, ULong])
def test_nothing_is_lost(durable: bool, names: Any) -> None:
    """Whatever annotations are said one after the other: their message waits, in full, or is somebody's."""
    machine = Machine(durable=durable)
    machine.consumer()
    machine.publish(2, persistent=durable)
    for number in range(8):
        many = [None] * 150 if names is Symbol else None
        keys = range(20 * number, 20 * number + 20) if names is ULong else [f"k{number}"]
        said = added.written({names(key): many for key in keys})
        why = machine.queue.settle(pb.RELEASE, [1, 2], 0, Change(said))
        assert ("may gather" in why) == bool(number)
        assert len(annotations(machine.link.deliveries.properties[-1])) == (20 if names is ULong else 1)
        assert sorted(machine.link.uids()[-2:]) == [1, 2]
    machine.queue.settle(pb.ACCEPT, [1, 2], 0)
    machine.queue.end(durable=durable)
    assert (machine.queue.holding.size, machine.account.used) == (0, 0)


def test_whatever_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault while annotations are added keeps nobody's message from going back."""
    monkeypatch.setattr(added, "merged", None)
    machine = Machine()
    machine.consumer()
    machine.publish(2)
    machine.link.taken()
    with pytest.raises(TypeError):
        machine.queue.settle(pb.RELEASE, [1, 2], 0, Change(LATE))
    assert machine.link.uids() == [1, 2]


@pytest.mark.parametrize("said_by", ["qpid.queue_sort_key", "qpid.last_value_queue_key", "qpid.group_header_key"])
def test_what_the_queue_goes_by(said_by: str) -> None:
    """Where a message stands, and whose it is, is its publisher's to say."""
    machine = Machine(table={said_by: "x-why"})
    machine.consumer()
    machine.publish(1)
    assert "by which the queue goes" in machine.queue.settle(pb.RELEASE, [1], 0, Change(LATE))
    assert annotations(machine.link.deliveries.properties[-1]) == {}
    assert machine.link.uids()[-1:] == [1]
