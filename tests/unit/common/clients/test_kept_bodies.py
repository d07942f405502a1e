"""What a publisher keeps of the large bodies that it has sent."""

from __future__ import annotations

import pytest

from services.common.clients import kept_bodies
from services.common.clients.kept_bodies import WORTH, KeptBodies
from services.common.clients.outbound import Attempt, Delivery, Messages
from services.common.errors import InternalError
from services.common.message.facts import Facts
from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb

_FACTS = Facts("/", "", "q", "amqp-0-9")


def _attempt(first: int, *bodies: bytes) -> Attempt:
    count = len(bodies)
    targets = [(SlotId(1),)] * count
    messages = Messages(range(first, first + count), [_FACTS] * count, [b""] * count, bodies, targets, range(count))
    return Attempt(messages, {SlotId(1): range(count)}, 0, Delivery(None, range(count)), messages.size)


def _large(number: int) -> bytes:
    return bytes([number]) * WORTH


def _keep(kept: KeptBodies, *attempts: Attempt) -> bool:
    return kept.keep(attempts, sum(attempt.size for attempt in attempts))


@pytest.fixture
def kept() -> KeptBodies:
    """Something may be delivered to it."""
    kept = KeptBodies()
    kept.wanted = True
    return kept


def _frame(uids: list[int], named: list[int]) -> pb.QueueFrame:
    return pb.QueueFrame(deliveries=pb.DeliveryBatch(uids=uids, kept=named))


def test_bodies_take_their_places(kept: KeptBodies) -> None:
    """Those that were named stand among those that came, in the order of the deliveries; each can be named once."""
    assert _keep(kept, _attempt(1, _large(1), _large(2)), _attempt(3, _large(3)))
    assert kept.filled(_frame([9, 3, 8, 1], [1, 3]), [b"x", b"y"]) == [b"x", _large(3), b"y", _large(1)]
    assert kept.filled(_frame([2], [0]), []) == [_large(2)]
    with pytest.raises(InternalError, match="message 2 is not kept"):
        kept.filled(_frame([2], [0]), [])


def test_frames_that_name_nothing(kept: KeptBodies) -> None:
    """They have what came with them."""
    _keep(kept, _attempt(1, _large(1)))
    assert kept.filled(pb.QueueFrame(done=[1]), []) == []
    assert kept.filled(_frame([1], []), [b"came"]) == [b"came"]


def test_only_what_is_worth_it(kept: KeptBodies) -> None:
    """Not small bodies, and nothing where there is no consumer, nor one message twice."""
    assert not _keep(kept, _attempt(1, b"small", b"small"))
    assert not _keep(KeptBodies(), _attempt(1, _large(1)))
    assert not _keep(kept, _attempt(1, _large(1)), _attempt(1, _large(1)))
    assert _keep(kept, _attempt(1, _large(1)))
    assert not _keep(kept, _attempt(1, _large(1)))


def test_there_is_an_end_to_it(kept: KeptBodies, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that does not fit is not kept; what is delivered or forgotten makes room."""
    monkeypatch.setattr(kept_bodies, "_MOST", 3 * WORTH)
    assert _keep(kept, _attempt(1, _large(1)))
    assert _keep(kept, _attempt(2, _large(2)))
    assert not _keep(kept, _attempt(3, _large(3)))
    kept.filled(_frame([1], [0]), [])
    assert _keep(kept, _attempt(3, _large(3)))
    assert not _keep(kept, _attempt(4, _large(4)))
    kept.filled(pb.QueueFrame(forgotten=[2, 3]), [])
    assert _keep(kept, _attempt(4, _large(4), _large(5)[:-200]))
