"""When the messages of a publish batch were received, which their times to live begin with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, repeat

from services.queue.machine.body import Body
from services.rpc.queue_pb2 import PublishBatch

_ASTRAY_MS = 10_000  # a message is hardly ever on its way for so long


def times_of(batch: PublishBatch) -> int | list[int]:
    """In Unix ms: of all, or of each message where they differ."""
    if not batch.times_ms:
        return batch.time_ms
    if not batch.runs:
        return list(batch.times_ms)
    of_runs: Iterable[Iterable[int]] = (
        repeat(time_ms, run.count) for run, time_ms in zip(batch.runs, batch.times_ms, strict=True)
    )
    return list(chain.from_iterable(of_runs))


def put_right(raw: bytes | memoryview, batch: PublishBatch, bodies: Sequence[Body], now: int) -> bytes | memoryview:
    """What came just now is not far from `now`; gives the batch as it is from then on.

    Where it seems to be, its gateway's clock differs, or it has waited there: it begins to live now, as in RabbitMQ.
    What comes again may have been taken before, and is as old as its gateway says.
    """
    if not batch.times_ms and not _astray(batch.time_ms, now):
        return raw
    resent = set(batch.resent) | {index for index, run in enumerate(batch.runs) if run.resent}
    if not batch.times_ms and not resent:
        batch.time_ms = now
        return bytes(raw) + PublishBatch(time_ms=now).SerializeToString()  # of a field that comes twice the last counts
    times = list(batch.times_ms) or [batch.time_ms] * len(batch.runs or batch.uids)
    right = [now if _astray(time, now) and at not in resent else time for at, time in enumerate(times)]
    if right == times:
        return raw
    batch.times_ms[:] = right
    if not batch.shared_sizes:
        batch.bodies[:] = map(bytes, bodies)  # some may have been in front
    return batch.SerializeToString()


def _astray(time_ms: int, now: int) -> bool:
    return abs(now - time_ms) > _ASTRAY_MS
