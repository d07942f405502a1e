"""What expires, overflows, and is deleted for want of use."""

from __future__ import annotations

from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import Make


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


def test_many_expire_at_once(make: Make) -> None:
    """A turn drops only so many of them, the rest is due at once; a get comes to what is behind them all."""
    machine = make()
    machine.publish(5, ttl_ms=50)
    machine.publish(1)
    machine.queue.expire(50, 2)
    assert (machine.queue.ready_count, machine.queue.deadline()) == (4, 50)
    entry = machine.queue.get(machine.link, 60, settled=True)
    assert entry is not None
    assert entry.message.uid == 6
    assert machine.account.used == 0


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


def test_reserved_room(make: Make) -> None:
    """Room that a transaction was promised is not given to others."""
    machine = make(max_length=2, overflow="reject-publish")
    assert machine.queue.reserve(2, 8)
    assert machine.publish(1) == [(0, 1, pb.OVERFLOW)]
    assert not machine.queue.reserve(1, 4)
    machine.queue.unreserve(2, 8)
    assert machine.publish(1) == []
