"""What a publisher keeps of the large bodies that it has sent."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.budget import Budget
from services.common.clients.kept_bodies import WORTH, KeptBodies
from services.common.clients.outbound import Attempt, Delivery, Messages
from services.common.clients.shared_bodies import SharedBodies
from services.common.errors import InternalError
from services.common.message.facts import Facts
from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb

_FACTS = Facts("/", "", "q", "amqp-0-9")


def _attempt(first: int, *bodies: bytes, queue: int = 1) -> Attempt:
    count, queue_id = len(bodies), SlotId(queue)
    messages = Messages(
        range(first, first + count), [_FACTS] * count, [b""] * count, bodies, [(queue_id,)] * count, range(count)
    )
    return Attempt(messages, {queue_id: range(count)}, 0, Delivery(None, range(count)), messages.size)


def _large(number: int) -> bytes:
    return bytes([number]) * WORTH


def _keep(kept: KeptBodies, *attempts: Attempt) -> bool:
    return kept.keep(attempts, sum(attempt.size for attempt in attempts))


def _kept(room: Budget) -> KeptBodies:
    """Of a queue process that names bodies, and has a consumer of queue 1."""
    kept = KeptBodies(room, SharedBodies(Budget(0), locally=False))
    kept.filled(pb.QueueFrame(names_kept=True), [])
    kept.consumed.attach(pb.AttachConsumer(consumer=1, queue_id=1))
    return kept


@pytest.fixture
def room() -> Budget:
    return Budget(3 * WORTH)


@pytest.fixture
def kept(room: Budget) -> KeptBodies:
    return _kept(room)


def _frame(uids: list[int], named: list[int]) -> pb.QueueFrame:
    return pb.QueueFrame(deliveries=pb.DeliveryBatch(uids=uids, kept=named))


def test_bodies_take_their_places(kept: KeptBodies) -> None:
    """Those that were named stand among those that came, in the order of the deliveries; each can be named once."""
    assert _keep(kept, _attempt(1, _large(1), _large(2)), _attempt(3, _large(3)))
    assert kept.filled(_frame([9, 3, 8, 1], [1, 3]), [b"x", b"y"]) == [b"x", _large(3), b"y", _large(1)]
    assert kept.filled(_frame([2], [0]), []) == [_large(2)]
    with pytest.raises(InternalError, match="message 2 is not kept"):
        kept.filled(_frame([2], [0]), [])


def test_a_body_takes_no_longer_where_many_are_kept(kept: KeptBodies) -> None:
    """There may be thousands: they are looked up, and not looked through for each frame."""

    class LookedUp(dict[int, bytes]):
        def keys(self) -> Any:
            raise AssertionError("each is looked at")

    _keep(kept, _attempt(1, _large(1), _large(2)))
    kept._bodies = LookedUp(kept._bodies)
    assert kept.filled(_frame([2], [0]), []) == [_large(2)]


def test_frames_that_name_nothing(kept: KeptBodies) -> None:
    """They have what came with them."""
    _keep(kept, _attempt(1, _large(1)))
    assert kept.filled(pb.QueueFrame(done=[1]), []) == []
    assert kept.filled(_frame([1], []), [b"came"]) == [b"came"]


def test_forgotten_without_being_here(kept: KeptBodies, room: Budget) -> None:
    """Nothing is missing then: the stream goes on, and those that are here make room."""
    _keep(kept, _attempt(1, _large(1)))
    assert kept.filled(pb.QueueFrame(forgotten=[7, 1]), []) == []
    assert room.used == 0


def test_only_what_is_worth_it(kept: KeptBodies) -> None:
    """Not small bodies, nor one message twice."""
    assert not _keep(kept, _attempt(1, b"small", b"small"))
    assert not _keep(kept, _attempt(1, _large(1)), _attempt(1, _large(1)))
    assert _keep(kept, _attempt(1, _large(1)))
    assert not _keep(kept, _attempt(1, _large(1)))


def test_only_for_consumers_here(kept: KeptBodies) -> None:
    """All parts of a batch go to queues that have one; when the last has gone nothing is kept, and all is as it was."""
    assert not _keep(kept, _attempt(1, _large(1), queue=2))
    assert not _keep(kept, _attempt(1, _large(1)), _attempt(2, _large(2), queue=2))
    assert _keep(kept, _attempt(1, _large(1)))
    kept.consumed.detach(1)
    assert not _keep(kept, _attempt(2, _large(2)))
    assert kept.filled(_frame([1], [0]), []) == [_large(1)]


def test_a_process_that_names_none(room: Budget) -> None:
    """One of a former release would never ask for anything, nor forget it: nothing is kept until it has said so."""
    kept = KeptBodies(room, SharedBodies(Budget(0), locally=False))
    kept.consumed.attach(pb.AttachConsumer(consumer=1, queue_id=1))
    kept.filled(pb.QueueFrame(attached=[pb.Attached(consumer=1)]), [])
    assert not _keep(kept, _attempt(1, _large(1)))
    kept.filled(pb.QueueFrame(names_kept=True), [])
    assert _keep(kept, _attempt(1, _large(1)))


def test_there_is_an_end_to_it(kept: KeptBodies) -> None:
    """A batch that does not fit is not kept; what is delivered or forgotten makes room."""
    assert _keep(kept, _attempt(1, _large(1), _large(2)))
    assert not _keep(kept, _attempt(3, _large(3), _large(4)))
    assert _keep(kept, _attempt(3, _large(3)))
    kept.filled(_frame([1], [0]), [])
    assert _keep(kept, _attempt(4, _large(4)))
    assert not _keep(kept, _attempt(5, _large(5)))
    kept.filled(pb.QueueFrame(forgotten=[2, 3]), [])
    assert _keep(kept, _attempt(5, _large(5), _large(6)))


def test_all_streams_share_the_room(kept: KeptBodies, room: Budget) -> None:
    """What one keeps another cannot, until its stream is over; then it begins anew."""
    other = _kept(room)
    assert _keep(kept, _attempt(1, _large(1), _large(2)))
    assert not _keep(other, _attempt(1, _large(1), _large(2)))
    kept.close()
    assert room.used == 0
    assert _keep(other, _attempt(1, _large(1), _large(2)))
    assert not _keep(kept, _attempt(3, _large(3)))


@pytest.mark.parametrize(
    ("uids", "named", "came"),
    [([1, 1], [0, 1], []), ([1], [7], []), ([1, 9], [0], []), ([1, 9], [0], [b"x", b"y"])],
    ids=["twice", "nowhere", "too few", "too many"],
)
def test_deliveries_and_bodies_have_to_fit(
    kept: KeptBodies, room: Budget, uids: list[int], named: list[int], came: list[bytes]
) -> None:
    """A frame in which they do not ends its stream, which gives back all that it took of the room."""
    assert _keep(kept, _attempt(1, _large(1)))
    with pytest.raises(InternalError):
        kept.filled(_frame(uids, named), came)
    kept.close()
    assert room.used == 0
