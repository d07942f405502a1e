"""One frame at a time, none too large."""

from __future__ import annotations

from services.common.budget import Budget
from services.common.message.weight import FRAME_BYTES, weight
from services.queue.links.outbox import Outbox
from services.rpc import queue_pb2 as pb
from tests.support.messages import facts

FACTS = facts("ex")


def _add(outbox: Outbox, attempts: int, uids: list[int], properties: list[bytes], bodies: list[bytes]) -> None:
    its = [FACTS] * len(uids)
    outbox.deliveries.add(5, attempts, uids, its, properties, bodies, weight(properties, bodies))


def taken(outbox: Outbox) -> pb.QueueFrame | None:
    """The next frame, as its reader sees it, with all its bodies in it."""
    if (outgoing := outbox.take()) is None:
        return None
    wire = outgoing.wire()
    return pb.QueueFrame.FromString(wire if isinstance(wire, bytes) else b"".join(wire))


def test_wakes_once() -> None:
    """The writer is woken when there is something to say after there was nothing."""
    woken: list[int] = []
    outbox = Outbox(lambda: woken.append(1), Budget(0))
    assert taken(outbox) is None
    outbox.frame.done.append(1)
    outbox.frame.done.append(2)
    frame = taken(outbox)
    assert frame is not None
    assert (list(frame.done), len(woken), outbox.pending) == ([1, 2], 1, False)


def test_runs_merge() -> None:
    """What continues a run is part of it: the same consumer, as many attempts before."""
    outbox = Outbox(lambda: None, Budget(0))
    for uid in (1, 2):
        _add(outbox, 0, [uid], [b"p"], [b"body"])
    for uid, attempts in ((3, 1), (4, 2)):
        _add(outbox, attempts, [uid], [b"p"], [b"body"])
    frame = taken(outbox)
    assert frame is not None
    runs = [(run.count, run.redelivered, run.attempts) for run in frame.deliveries.runs]
    assert runs == [(2, False, 0), (1, True, 1), (1, True, 2)]


def test_large_deliveries_are_split() -> None:
    """A frame that would be too large is split within a run, and the end of its consumer waits for the rest."""
    outbox = Outbox(lambda: None, Budget(0))
    _add(outbox, 0, [1, 2, 3], [b"a", b"b", b"c"], [bytes(9 << 20)] * 3)
    outbox.frame.detached.append(5)
    frames = []
    while frame := taken(outbox):
        frames.append(frame)
    assert [list(frame.deliveries.uids) for frame in frames] == [[1], [2], [3]]
    assert [list(frame.deliveries.properties) for frame in frames] == [[b"a"], [b"b"], [b"c"]]
    assert [list(frame.detached) for frame in frames] == [[], [], [5]]


def test_properties_weigh() -> None:
    """Frames are split by all that they carry: messages may be mostly properties."""
    outbox, count, large = Outbox(lambda: None, Budget(0)), 100, FRAME_BYTES // 10
    for uid in range(count):
        _add(outbox, 0, [uid], [uid.to_bytes(4) + bytes(large)], [b"x"])
    frames = []
    while frame := taken(outbox):
        frames.append(frame)
    assert [uid for frame in frames for uid in frame.deliveries.uids] == list(range(count))
    assert max(frame.ByteSize() for frame in frames) <= FRAME_BYTES
    assert len(frames) == 12


def test_what_comes_later_comes_behind() -> None:
    """Deliveries that are added while others wait for their frame come after those."""
    outbox = Outbox(lambda: None, Budget(0))
    _add(outbox, 0, [1, 2], [b"p"] * 2, [bytes(FRAME_BYTES)] * 2)
    first = taken(outbox)
    _add(outbox, 0, [3], [b"p"], [b"small"])
    frames = [first, taken(outbox), taken(outbox)]
    assert [list(frame.deliveries.uids) for frame in frames if frame] == [[1], [2], [3]]
    assert taken(outbox) is None


def test_replies_are_split() -> None:
    """What single gets took of large messages goes into as many frames as it needs."""
    outbox = Outbox(lambda: None, Budget(0))
    for number in range(5):
        body = [bytes(FRAME_BYTES // 2 - 1000)]
        outbox.reply(pb.QueueReply(id=number, message=pb.DeliveryBatch(bodies=body)))
    frames = []
    while frame := taken(outbox):
        frames.append([reply.id for reply in frame.replies])
    assert frames == [[0, 1], [2, 3], [4]]
