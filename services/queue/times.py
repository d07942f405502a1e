"""When the messages of a publish batch were received, which their times to live begin with."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat

from services.rpc.queue_pb2 import PublishBatch

_ASTRAY_MS = 10_000  # a message is hardly ever on its way for so long


def times(batch: PublishBatch) -> Iterable[int]:
    """Of each run, in Unix ms."""
    return batch.times_ms or repeat(batch.time_ms, len(batch.runs))


def put_right(raw: bytes, batch: PublishBatch, now: int) -> bytes:
    """What came just now is not far from `now`; gives the batch as it is from then on.

    Where it seems to be, its gateway's clock differs, or it has waited there: it begins to live now, as in RabbitMQ.
    What comes again may have been taken before, and is as old as its gateway says.
    """
    if not batch.times_ms:
        if not _astray(batch.time_ms, now):
            return raw
        if not any(run.resent for run in batch.runs):
            batch.time_ms = now
            return raw + PublishBatch(time_ms=now).SerializeToString()  # of a field that comes twice the last counts
    runs = list(zip(batch.runs, times(batch), strict=True))
    right = [now if _astray(time, now) and not run.resent else time for run, time in runs]
    if right == [time for _, time in runs]:
        return raw
    batch.times_ms[:] = right
    return batch.SerializeToString()


def _astray(time_ms: int, now: int) -> bool:
    return abs(now - time_ms) > _ASTRAY_MS
