"""What expires, overflows, and is deleted for want of use."""

from __future__ import annotations

import pytest

from services.queue.machine import turn
from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import Machine, Make


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn gives up ten messages at most."""
    monkeypatch.setattr(turn, "AT_ONCE", 10)
    monkeypatch.setattr(turn, "SCATTERED", 5)


def tick(machine: Machine, now: int) -> None:
    """What the clock does when the queue has said that something is due."""
    assert 0 < machine.queue.deadline() <= now
    machine.queue.expire(now)
    machine.queue.dispatch(now)


def test_message_ttl(make: Make) -> None:
    """A message is not delivered after its own time, or that of the queue if that is shorter."""
    machine = make(message_ttl=100, dead_letter_exchange="dlx")
    machine.publish(1, ttl_ms=50)
    machine.publish(1, ttl_ms=500)
    assert machine.queue.deadline() == 50
    machine.queue.expire(50)
    assert machine.dead() == [(1, "expired")]
    machine.consumer(now=100)
    assert machine.link.uids() == []
    assert machine.dead() == [(2, "expired")]


@pytest.mark.usefixtures("few")
def test_a_get_behind_many_that_expired(make: Make) -> None:
    """It is told to come again until the clock has dropped them all, some in each turn."""
    machine = make(dead_letter_exchange="dlx")
    machine.publish(25, ttl_ms=50)
    machine.publish(1)
    for dropped in (10, 0, 0):
        assert machine.queue.lags(60)
        assert machine.queue.get(machine.link, 60, settled=True) is None
        assert len(machine.dead()) == dropped
    for dropped in (10, 5):
        tick(machine, 60)
        assert len(machine.dead()) == dropped
    assert not machine.queue.lags(60)
    entry = machine.queue.get(machine.link, 60, settled=True)
    assert entry is not None
    assert entry.message.uid == 26


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("back", [False, True])
def test_a_consumer_of_many_that_expired(make: Make, *, first: bool, back: bool) -> None:
    """It gets what is before and behind them, when the clock has dropped them: some in each turn.

    Behind another one five go by the clock; ten go wherever they are in the way.
    """
    machine = make(dead_letter_exchange="dlx")
    if first:
        machine.publish(1)
    machine.publish(25, ttl_ms=50)
    machine.publish(2)
    if back:
        gone = machine.consumer()
        machine.queue.detach(gone, 0)
        machine.queue.settle(pb.RELEASE, machine.link.uids(), 0)
    machine.consumer(now=60)
    assert len(machine.dead()) == (15 if first else 10)
    assert machine.link.uids() == ([1] if first else [])
    for dropped in (10, 0) if first else (10, 5):
        tick(machine, 60)
        assert len(machine.dead()) == dropped
    assert len(machine.link.uids()) == 2
    machine.publish(1)
    assert len(machine.link.uids()) == 1


@pytest.mark.usefixtures("few")
def test_a_full_queue_of_which_much_expired(make: Make) -> None:
    """It is full until the clock has dropped it, also for an immediate message, with a consumer that waits."""
    machine = make(max_length=25, overflow="reject-publish")
    machine.publish(25, ttl_ms=50)
    machine.consumer(now=60)
    assert machine.publish(10, now=60) == []
    assert machine.publish(1, now=60) == [(0, 1, pb.OVERFLOW)]
    assert machine.publish(1, now=60, immediate=True) == [(0, 1, pb.NO_CONSUMERS)]
    tick(machine, 60)
    tick(machine, 60)
    assert machine.link.uids() == list(range(26, 36))
    assert machine.account.used == machine.queue.holding.size


def test_expired_ones_behind_the_head(make: Make) -> None:
    """Expired messages between others are passed over when they would be delivered."""
    machine = make(dead_letter_exchange="dlx")
    machine.publish(1)
    machine.publish(1, ttl_ms=10)
    machine.publish(1)
    machine.consumer(now=20)
    assert machine.link.uids() == [1, 3]
    assert machine.dead() == [(2, "expired")]


def test_ttl_zero_reaches_a_ready_consumer(make: Make) -> None:
    """Expiration 0 means: at once or never."""
    machine = make()
    machine.publish(1, ttl_ms=0, now=5)
    assert machine.queue.ready_count == 0
    machine.consumer(now=5)
    machine.publish(1, ttl_ms=0, now=5)
    assert machine.link.uids() == [2]


def test_unused_queue(make: Make) -> None:
    """x-expires counts from the last consumer, get or declaration."""
    machine = make(expires=100)
    consumer = machine.consumer(now=50)
    assert not machine.queue.use.expired(1000)
    machine.queue.detach(consumer, 1000)
    assert machine.queue.deadline() == 1100
    machine.queue.use.touch(1050)
    assert not machine.queue.use.expired(1100)
    assert machine.queue.use.expired(1150)


def test_drop_head(make: Make) -> None:
    """The oldest ready messages go when there are too many."""
    machine = make(max_length=2, dead_letter_exchange="dlx")
    assert machine.publish(3) == []
    machine.publish(1)
    assert machine.dead() == [(1, "maxlen"), (2, "maxlen")]
    machine.consumer()
    assert machine.link.uids() == [3, 4]


def test_drop_head_by_bytes(make: Make) -> None:
    """x-max-length-bytes counts bodies."""
    machine = make(max_length_bytes=10)
    machine.publish(3, body=bytes(4))
    assert machine.queue.ready_count == 2


def test_reject_publish(make: Make) -> None:
    """A full queue refuses what does not fit, from the first that does not."""
    machine = make(max_length=2, overflow="reject-publish", dead_letter_exchange="dlx")
    assert machine.publish(3) == [(2, 1, pb.OVERFLOW)]
    assert machine.dead() == []
    assert machine.queue.ready_count == 2


def test_reject_publish_dlx(make: Make) -> None:
    """With reject-publish-dlx the refused are dead-lettered as well."""
    machine = make(max_length=1, overflow="reject-publish-dlx", dead_letter_exchange="dlx")
    assert machine.publish(3) == [(1, 2, pb.OVERFLOW)]
    assert machine.dead() == [(2, "maxlen"), (3, "maxlen")]


def test_limits_count_only_what_waits(make: Make) -> None:
    """Messages that consumers take at once do not fill a queue, however short it is."""
    for overflow in ("drop-head", "reject-publish"):
        machine = make(max_length=1, overflow=overflow)
        machine.consumer(messages=5)
        assert machine.publish(6) == []
        assert machine.link.uids() == [1, 2, 3, 4, 5]
        assert machine.queue.ready_count == 1


def test_no_overflow(make: Make) -> None:
    """Broker-J's NONE: a limit that is set, and holds no publisher back."""
    machine = make(max_length=1, overflow="none")
    assert machine.publish(3) == []
    assert machine.queue.transacted.reserve(5, 5)
    assert machine.queue.ready_count == 3


def test_reserved_room(make: Make) -> None:
    """Room that a transaction was promised is not given to others."""
    machine = make(max_length=2, overflow="reject-publish")
    assert machine.queue.transacted.reserve(2, 8)
    assert machine.publish(1) == [(0, 1, pb.OVERFLOW)]
    assert not machine.queue.transacted.reserve(1, 4)
    machine.queue.transacted.unreserve(2, 8)
    assert machine.publish(1) == []
