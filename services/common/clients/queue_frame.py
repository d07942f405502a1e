"""A frame of a queue process, read."""

from __future__ import annotations

from services.common.message import in_front
from services.rpc import queue_pb2 as pb


def decoded(message: bytes) -> tuple[pb.QueueFrame, list[bytes]]:
    """A frame, and the bodies of its deliveries, which it need not have itself. Raises DecodeError."""
    batches, rest = in_front.batches(in_front.DELIVERIES, message)
    frame = pb.QueueFrame.FromString(message[rest:] if rest else message)
    large: list[bytes] = []
    for batch in batches:
        bodies, its_rest = in_front.bodies(in_front.DELIVERIES, batch)
        frame.deliveries.MergeFromString(bytes(batch[its_rest:]))
        large += bodies
    return frame, large + list(frame.deliveries.bodies)
