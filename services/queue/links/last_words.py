"""Of a stream that is over, what clients are done with counts, though it is carried out later.

A gateway that has left does not say it again, and one that comes back says all of it. What they gave back is left out:
with the end of the stream it is abandoned, which counts as an attempt.
"""

from __future__ import annotations

from collections.abc import Iterable

from services.queue.machine.claims import FINAL
from services.rpc.queue_pb2 import LinkFrame, Settle


def last_words(settles: Iterable[Settle]) -> list[Settle]:
    """Those of some settlements that count."""
    return [settle for settle in settles if settle.outcome in FINAL and not settle.transaction]


def last_words_of(frames: Iterable[tuple[LinkFrame, object]]) -> list[Settle]:
    """Those of frames, each with what came with it, that were not carried out before the end."""
    return [settle for frame, _ in frames for settle in last_words(frame.settles)]
