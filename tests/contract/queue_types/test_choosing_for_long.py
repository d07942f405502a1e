"""What is left to do when consumers have chosen: turns that end, memory that is given back, others that go on."""

from __future__ import annotations

import gc

import pytest

from services.queue.machine import turn
from services.queue.machine.delivery import late
from services.queue.machine.delivery.selective import SelectiveDelivery
from services.queue.machine.message import Message
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.test_choosing import settled_down, wanting
from tests.support.messages import PROPERTIES, facts
from tests.support.queue_machine import AMQP_0_9, FakeLink, Machine, Make


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn has ten looks."""
    monkeypatch.setattr(turn, "LOOKS", 10)


def test_a_header_that_is_no_value(make: Make) -> None:
    """A list is what nothing compared equals, and no fault of those beside it."""
    machine = make()
    machine.consumer(interest=wanting("colour = 'red'"))
    machine.publish_with("colour", "red", "red", ["x"], {"a": 1}, "red")
    assert machine.link.uids() == [1, 2, 5]


def test_a_fault_in_the_middle(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was chosen before it is sent all the same, and what comes behind it is offered the next time."""
    machine = make()
    machine.consumer(interest=wanting("colour = 'red'"))
    offer, offered = SelectiveDelivery._wants, list[int]()

    def fails(self: SelectiveDelivery, *args: object) -> bool:
        offered.append(1)
        if len(offered) == 2:
            raise ZeroDivisionError
        return offer(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(SelectiveDelivery, "_wants", fails)
    with pytest.raises(ZeroDivisionError):
        machine.publish_with("colour", "red", "red", "red")
    assert machine.link.uids() == [1]
    machine.queue.dispatch(0)
    assert machine.link.uids() == [2, 3]


@pytest.mark.parametrize("again", [False, True])
def test_a_browser_with_little_credit(make: Make, monkeypatch: pytest.MonkeyPatch, *, again: bool) -> None:
    """Its cursor reaches the end, one message at a time, whatever is published and settled meanwhile."""
    monkeypatch.setattr(late, "_SPARE", 1)
    machine, other = make(), FakeLink()
    browser = machine.consumer(browse=True, messages=1)
    machine.consumer(link=other, messages=1)
    machine.publish_with("colour", *map(str, range(5)))
    seen = machine.link.uids()
    for _ in range(6):
        if again:
            machine.queue.settle(pb.RESTORE, other.uids(), 0)
        machine.queue.credit(browser, 1, 0, 0)
        seen += machine.link.uids()
    assert sorted(seen) == [1, 2, 3, 4, 5]


@pytest.mark.usefixtures("few")
def test_the_consumer_that_selects_has_gone(make: Make) -> None:
    """In the middle of a long way: others have what is left, when the clock goes on."""
    machine, plain = make(), FakeLink()
    machine.publish_with("colour", *["blue"] * 95)
    chooser = machine.consumer(interest=wanting("colour LIKE 'red'"))
    machine.consumer(link=plain)
    machine.queue.detach(chooser, 0)
    settled_down(machine)
    assert len(plain.uids()) == 95
    assert machine.queue.ready_count == 0


@pytest.mark.usefixtures("few")
def test_what_is_new_beside_a_long_way(make: Make) -> None:
    """A consumer whose cursor is far behind does not keep others from new messages that they select."""
    machine, newcomer = make(), FakeLink()
    machine.consumer(interest=wanting("colour = 'red'"))
    machine.publish_with("colour", *["blue"] * 95)
    settled_down(machine)
    machine.consumer(link=newcomer, interest=wanting("colour LIKE 'green'"))
    machine.publish_with("colour", "red")
    machine.queue.expire(0)
    machine.queue.dispatch(0)
    assert machine.queue.unfinished
    assert machine.link.uids() == [96]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("unwanted", range(1, 30))
def test_what_is_behind_a_long_way(make: Make, unwanted: int) -> None:
    """A consumer whose cursor is at the end is offered messages not looked at yet, however many looks are left."""
    machine, newcomer = make(), FakeLink()
    machine.consumer(interest=wanting("colour LIKE 'red'"), messages=1)
    machine.publish_with("colour", *["blue"] * unwanted, "red")
    settled_down(machine)
    machine.publish_with("colour", "green", "green")
    consumer = machine.consumer(link=newcomer, interest=wanting("colour LIKE 'green'"))
    while machine.queue.unfinished:
        assert not (machine.queue.has_offered_all(consumer) and machine.queue.ready_count > unwanted)
        machine.queue.expire(0)
        machine.queue.dispatch(0)
    assert newcomer.uids() == [unwanted + 2, unwanted + 3]


@pytest.mark.usefixtures("few")
def test_what_comes_back_beside_a_long_way(make: Make) -> None:
    """A consumer past a message's place is not done until it is offered that, which waits for the looks of others."""
    machine, gone, newcomer = make(), FakeLink(), FakeLink()
    machine.consumer(link=gone, messages=1)
    machine.publish_with("colour", "red")
    chooser = machine.consumer(interest=wanting("colour LIKE 'red'"))
    machine.publish_with("colour", *["blue"] * 95)
    settled_down(machine)
    machine.consumer(link=newcomer, interest=wanting("colour LIKE 'green'"))
    assert machine.queue.unfinished
    assert machine.queue.has_offered_all(chooser)
    machine.queue.settle(pb.RELEASE, gone.uids(), 0)
    assert not machine.queue.has_offered_all(chooser)
    settled_down(machine)
    assert machine.link.uids() == [1]


@pytest.mark.usefixtures("few")
def test_turns_end(make: Make) -> None:
    """Also where an index says at once that no consumer selects anything."""
    machine = make()
    machine.publish_with("colour", *["blue"] * 200)
    machine.consumer(interest=wanting("colour = 'red'"))
    assert machine.queue.unfinished
    assert settled_down(machine) > 10 or machine.queue.ready_count < 200


def test_equals_take_turns(make: Make) -> None:
    """A browser beside them changes nothing about it."""
    machine, one, other = make(), FakeLink(), FakeLink()
    machine.consumer(browse=True)
    machine.consumer(link=one)
    machine.consumer(link=other)
    for _ in range(5):
        machine.publish(20)
    assert abs(len(one.uids()) - len(other.uids())) <= 2


def test_what_has_gone_is_forgotten(make: Make) -> None:
    """Hardly anything is kept in memory of settled messages: four of forty megabytes."""
    machine = make()
    machine.consumer(interest=wanting("colour = 'red'"), messages=0)
    taker = machine.consumer(interest=wanting("colour LIKE 'red'"), messages=0)
    properties = AMQP_0_9.with_headers(PROPERTIES, {"colour": "red"})
    for _ in range(40):
        machine.publish_mixed([facts("amq.direct")], body=bytes(1_000_000), properties=[properties])
        machine.queue.credit(taker, 1, 1 << 30, 0)
        machine.queue.settle(pb.ACCEPT, machine.link.uids(), 0)
    machine.queue.dispatch(0)
    machine.contents.clear()
    gc.collect()
    kept = {id(each.body): len(each.body) for each in gc.get_objects() if isinstance(each, Message)}
    assert machine.account.used == 0
    assert sum(size for size in kept.values() if size == 1_000_000) < 4_000_000


def test_a_browser_of_another_time(make: Make) -> None:
    """What has been looked at in a former time of choosing is not shown twice in the next one."""
    machine, plain = make(), FakeLink()
    machine.publish_with("colour", "blue", "blue", "blue")
    chooser = machine.consumer(interest=wanting("colour = 'red'"))
    machine.queue.detach(chooser, 0)
    machine.consumer(browse=True, messages=3)
    machine.queue.credit(machine.consumer(link=plain, messages=0), 0, 0, 0)
    machine.publish_with("colour", "blue")
    browser = next(iter(machine.queue.consumers))
    machine.queue.credit(browser, 5, 0, 0)
    assert machine.link.uids() == [1, 2, 3, 4]


def test_a_full_queue_of_consumers_with_selectors(make: Make) -> None:
    """It takes what its consumers take from it at once."""
    machine = make(max_length=5, overflow="reject-publish")
    machine.consumer(browse=True, link=FakeLink())
    machine.consumer()
    assert machine.publish(12) == []
    assert len(machine.link.uids()) == 12


def test_the_next_of_a_sorted_queue(few_sorted: Machine) -> None:
    """A consumer that chooses gets the first by the order of its type, however many came meanwhile."""
    machine = few_sorted
    chooser = machine.consumer(interest=wanting("colour <> 'x'"), messages=0)
    machine.publish_with("colour", *[f"{number:03}" for number in reversed(range(600))])
    machine.queue.credit(chooser, 2, 0, 0)
    settled_down(machine)
    assert machine.link.uids() == [600, 599]


@pytest.fixture
def few_sorted() -> Machine:
    return Machine("sorted", table={"qpid.queue_sort_key": "colour"})
