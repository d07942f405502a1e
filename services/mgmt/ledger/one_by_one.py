"""Rows that say something of each message, its place or its uid: a row for each place. Whole columns at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from services.common.ledger.stages import OF_PARTITIONS
from services.common.uid import SEQUENCE_BITS
from services.rpc.ledger_pb2 import LedgerBatch

_LOW = (1 << 32) - 1


class Parts(NamedTuple):
    """Rows, each one of the batch or a part of it; the ranges of row i are from offsets[i] up to offsets[i + 1]."""

    rows: list[int]  # of the batch
    places: pa.Array  # those of the batch, and behind them the keyed ones
    sizes: list[int]
    offsets: list[int]
    firsts: pa.Array
    lengths: pa.Array


class _Messages(NamedTuple):
    """Of each, columns: its row and place as one number, uid, bytes."""

    group: pa.Array
    uid: pa.Array
    size: pa.Array

    def take(self, order: pa.Array) -> _Messages:
        return _Messages(*(column.take(order) for column in self))


def parts_of(batch: LedgerBatch, offsets: Sequence[int]) -> Parts:
    """Of all such rows, one for each place and origin; `offsets` are those of the ranges of the batch's rows.

    Raises ValueError where columns do not match.
    """
    both = zip(_mixed(batch, offsets), _single(batch), strict=True)
    messages = _Messages(*(pa.concat_arrays(columns) for columns in both))
    group, uid, size = messages.take(pc.sort_indices(messages.group))  # stable: uids ascend further on
    begins_row = pc.or_(_differs(group, pc.not_equal), _differs(pc.shift_right(uid, SEQUENCE_BITS), pc.not_equal))
    begins_range = pc.or_(begins_row, _differs(uid, _far))
    starts = pc.indices_nonzero(begins_range).cast(pa.int64())
    which = group.filter(begins_row)
    return Parts(
        rows=pc.shift_right(which, 32).to_pylist(),
        places=pc.bit_wise_and(which, _LOW),
        sizes=_sums(size, begins_row),
        offsets=[*pc.indices_nonzero(begins_row.filter(begins_range)).to_pylist(), len(starts)],
        firsts=uid.take(starts),
        lengths=_gaps(starts, len(uid)),
    )


def _mixed(batch: LedgerBatch, offsets: Sequence[int]) -> _Messages:
    rows: list[int] = []
    counts: list[int] = []
    ranges: list[tuple[int, int]] = []
    for mixture in batch.mixtures:
        row = mixture.row - batch.first_row
        if not 0 <= row < len(batch.stages):
            raise ValueError("a mixture of no row")
        its = slice(offsets[row], offsets[row + 1])
        rows.append((row << 32) + len(batch.places))
        counts.append(sum(batch.lengths[its]))
        if len(mixture.places) != 4 * counts[-1] or len(mixture.sizes) not in {0, len(mixture.places)}:
            raise ValueError("a mixture and its row do not match")
        ranges += zip(batch.firsts[its], batch.lengths[its], strict=True)
    places = _unpacked(pa.uint32(), [each.places for each in batch.mixtures])
    if len(places) and pc.max(places).as_py() >= min(len(batch.bases), len(batch.keys)):
        raise ValueError("a mixture of places that are not said")
    sizes = _unpacked(pa.uint32(), [each.sizes or bytes(len(each.places)) for each in batch.mixtures])
    return _Messages(pc.add(_repeated(rows, counts), places), _uids(ranges), sizes)


def _single(batch: LedgerBatch) -> _Messages:
    rows, counts = [row for row, count in enumerate(batch.ranges) if not count], list(batch.singles)
    uid = _unpacked(pa.uint64(), [batch.uids])
    if len(rows) != len(counts) or sum(counts) != len(uid):
        raise ValueError("rows and uids do not match")
    if 0 in counts:
        if any(batch.stages[row] not in OF_PARTITIONS for row, count in zip(rows, counts, strict=True) if not count):
            raise ValueError("a row of no messages")
        rows = [row for row, count in zip(rows, counts, strict=True) if count]
        counts = [count for count in counts if count]
    places, sizes = list(batch.place), list(batch.bytes)
    group = _repeated([(row << 32) + places[row] for row in rows], counts)
    messages = _Messages(group, uid, _with_the_first([sizes[row] for row in rows], counts))
    ascend = pc.or_(_differs(group, pc.not_equal), _differs(uid, pc.greater))
    return messages if pc.all(ascend).as_py() is not False else messages.take(pc.sort_indices(uid))


def _with_the_first(sizes: Sequence[int], counts: Sequence[int]) -> pa.Array:
    """Of each of so many messages, the size of all with the first of them."""
    if not any(sizes):
        return pa.repeat(pa.scalar(0, pa.int64()), sum(counts))
    found = [size for first, count in zip(sizes, counts, strict=True) for size in (first, *[0] * (count - 1))]
    return pa.array(found, pa.int64())


def _unpacked(kind: pa.DataType, packed: Sequence[bytes]) -> pa.Array:
    joined = b"".join(packed)
    count = len(joined) // (kind.bit_width // 8)
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(joined)]).cast(pa.int64())


def _uids(ranges: list[tuple[int, int]]) -> pa.Array:
    """All that ranges (the first, how many) have, one after the other."""
    lengths = [length for _, length in ranges]
    index = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), sum(lengths)))
    before = accumulate(lengths, initial=1)
    return pc.add(index, _repeated([first - start for (first, _), start in zip(ranges, before, strict=False)], lengths))


def _repeated(values: Sequence[int], counts: Sequence[int]) -> pa.Array:
    """Each value as often as its count says."""
    ends = pa.array(accumulate(counts), pa.int32())
    return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, pa.array(values, pa.int64())))


def _differs(column: pa.Array, how: object) -> pa.Array:
    """Of each value, whether it differs from the one before it; the first does."""
    differ = how(column[1:], column[:-1])  # type: ignore[operator]
    return pa.concat_arrays([pa.array([True] * bool(len(column)), pa.bool_()), differ])


def _far(later: pa.Array, before: pa.Array) -> pa.Array:
    return pc.not_equal(pc.subtract(later, before), 1)


def _gaps(starts: pa.Array, end: int) -> pa.Array:
    ends = pa.concat_arrays([starts[1:], pa.array([end], pa.int64())])
    return pc.subtract(ends, starts) if len(starts) else starts


def _sums(sizes: pa.Array, begins: pa.Array) -> list[int]:
    """What each row's sizes add up to."""
    upto = pc.subtract(pc.cumulative_sum(sizes), sizes).filter(begins)
    sums: list[int] = _gaps(upto, pc.sum(sizes).as_py() or 0).to_pylist()
    return sums
