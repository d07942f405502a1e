"""Large bodies in front of a frame: any reader of protobuf finds the same in it."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from services.common.clients import queue_frame
from services.common.clients.link_frame import Frame
from services.common.message import in_front
from services.common.message.in_front import DELIVERIES, PUBLISHES
from services.queue.machine.columns import decoded
from services.rpc import queue_pb2 as pb

SIZES = st.one_of(st.integers(0, 300), st.sampled_from([16_383, 16_384, 70_000]))
BODIES = st.lists(SIZES.map(lambda size: b"\x22\x1a"[: size % 3] + bytes(size)), min_size=1, max_size=6)
"""Some begin as fields do."""


def link_frame(batches: list[tuple[list[bytes], bool]]) -> tuple[bytes, pb.LinkFrame]:
    """As it is written where `batches` say which bodies go in front, and as protobuf would have it."""
    frame, plain = Frame(), pb.LinkFrame()
    frame.fields.credits.add(consumer=1, messages=7)
    plain.credits.add(consumer=1, messages=7)
    for number, (bodies, apart) in enumerate(batches, 1):
        rest = pb.PublishBatch(sequence=number, uids=range(len(bodies)), properties=[b"p"], facts=[b""])
        whole = pb.PublishBatch(bodies=bodies)
        whole.MergeFrom(rest)
        plain.publishes.append(whole.SerializeToString())
        frame.batches.append(in_front.batch(PUBLISHES, bodies, rest) if apart else whole.SerializeToString())
    wire = frame.wire()
    return wire if isinstance(wire, bytes) else b"".join(wire), plain


@given(st.lists(st.tuples(BODIES, st.booleans()), max_size=4))
def test_what_is_published(batches: list[tuple[list[bytes], bool]]) -> None:
    """Whichever batches have their bodies in front: all of them, in their order, and the rest of the frame."""
    data, plain = link_frame(batches)
    assert [pb.PublishBatch.FromString(raw) for raw in pb.LinkFrame.FromString(data).publishes] == [
        pb.PublishBatch.FromString(raw) for raw in plain.publishes
    ]
    found, rest = in_front.batches(PUBLISHES, data)
    frame = pb.LinkFrame.FromString(data[rest:])
    assert list(frame.credits) == list(plain.credits)
    read = [decoded(raw) for raw in (*found, *frame.publishes)]
    assert [bodies for _, bodies in read] == [bodies for bodies, _ in batches]
    assert [(batch.sequence, list(batch.uids)) for batch, _ in read] == [
        (number, list(range(len(bodies)))) for number, (bodies, _) in enumerate(batches, 1)
    ]


@given(BODIES)
def test_what_is_delivered(bodies: list[bytes]) -> None:
    """The gateway reads the same frame and the same bodies, in front or not."""
    plain = pb.QueueFrame(done=[3], deliveries=pb.DeliveryBatch(uids=range(len(bodies)), bodies=bodies))
    assert queue_frame.decoded(plain.SerializeToString()) == (plain, bodies)
    rest = pb.DeliveryBatch(uids=range(len(bodies)))
    data = b"".join(in_front.frame(DELIVERIES, [in_front.batch(DELIVERIES, bodies, rest)], pb.QueueFrame(done=[3])))
    assert pb.QueueFrame.FromString(data) == plain
    assert queue_frame.decoded(data) == (pb.QueueFrame(done=[3], deliveries=rest), bodies)


def test_cut_off() -> None:
    """Wherever a frame ends too soon, within its batches or within one: DecodeError, as protobuf has it."""
    data, _ = link_frame([([bytes(200), bytes(5)], True)])
    batch_ends = in_front.batches(PUBLISHES, data)[1]
    for end in range(4, batch_ends):
        with pytest.raises(DecodeError):
            in_front.batches(PUBLISHES, data[:end])
    batch = in_front.batches(PUBLISHES, data)[0][0]
    for end in (1, 2, 100, 202, 204, 207):  # not where a field ends
        with pytest.raises(DecodeError):
            decoded(batch[:end])
    with pytest.raises(DecodeError, match="a length that does not end"):
        in_front.bodies(PUBLISHES, b"\x22" + b"\xff" * 9)


def test_when_it_pays() -> None:
    """Only large bodies go in front; a batch without bodies has none."""
    assert in_front.pays([bytes(10_000)], 10_000)
    assert not in_front.pays([bytes(100)] * 100, 10_000)
    assert not in_front.pays([], 10_000)
