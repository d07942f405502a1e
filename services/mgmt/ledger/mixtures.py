"""Rows whose messages were at places of their own, as a row for each place. Whole columns at a time: they are many."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from services.common.uid import SEQUENCE_BITS
from services.rpc.ledger_pb2 import LedgerBatch

_WIDTH = 4  # bytes of a number
_LOW = (1 << 32) - 1


class Parts(NamedTuple):
    """Rows, each a part of a mixture; the ranges of row i are those from offsets[i] up to offsets[i + 1]."""

    rows: list[int]  # of the batch
    places: pa.Array  # keyed ones
    sizes: list[int]
    offsets: list[int]
    firsts: pa.Array
    lengths: pa.Array


def parts_of(batch: LedgerBatch, offsets: list[int]) -> Parts:
    """All mixtures of a batch, as a row for each place and origin; `offsets` are those of the ranges of its rows.

    Raises ValueError where columns do not match.
    """
    group, uid, size = _messages(batch, offsets)
    order = pc.sort_indices(group)  # stable: uids ascend further on
    group, uid, size = group.take(order), uid.take(order), size.take(order)
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


def _messages(batch: LedgerBatch, offsets: list[int]) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Of each message of a mixture: row and place as one number, uid, and size."""
    rows: list[int] = []
    counts: list[int] = []
    ranges: list[tuple[int, int]] = []
    for mixture in batch.mixtures:
        row, count = mixture.row - batch.first_row, len(mixture.places) // _WIDTH
        if not 0 <= row < len(batch.stages):
            raise ValueError("a mixture of no row")
        its = slice(offsets[row], offsets[row + 1])
        if sum(batch.lengths[its]) != count or len(mixture.sizes) not in {0, len(mixture.places)}:
            raise ValueError("a mixture and its row do not match")
        rows.append(row << 32)
        counts.append(count)
        ranges += zip(batch.firsts[its], batch.lengths[its], strict=True)
    places = _unpacked([each.places for each in batch.mixtures])
    if pc.max(places).as_py() >= min(len(batch.bases), len(batch.keys)):
        raise ValueError("a mixture of places that are not said")
    sizes = _unpacked([each.sizes or bytes(len(each.places)) for each in batch.mixtures])
    return pc.add(_repeated(rows, counts), places), _uids(ranges), sizes


def _unpacked(packed: list[bytes]) -> pa.Array:
    joined = b"".join(packed)
    return pa.Array.from_buffers(pa.uint32(), len(joined) // _WIDTH, [None, pa.py_buffer(joined)]).cast(pa.int64())


def _uids(ranges: list[tuple[int, int]]) -> pa.Array:
    """All that ranges (the first, how many) have, one after the other."""
    lengths = [length for _, length in ranges]
    index = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), sum(lengths)))
    before = accumulate(lengths, initial=1)
    return pc.add(index, _repeated([first - start for (first, _), start in zip(ranges, before, strict=False)], lengths))


def _repeated(values: list[int], counts: list[int]) -> pa.Array:
    """Each value as often as its count says."""
    ends = pa.array(accumulate(counts), pa.int32())
    return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, pa.array(values, pa.int64())))


def _differs(column: pa.Array, how: object) -> pa.Array:
    """Of each value, whether it differs from the one before it; the first does."""
    differ = how(column[1:], column[:-1])  # type: ignore[operator]
    return pa.concat_arrays([pa.array([True]), differ])


def _far(later: pa.Array, before: pa.Array) -> pa.Array:
    return pc.not_equal(pc.subtract(later, before), 1)


def _gaps(starts: pa.Array, end: int) -> pa.Array:
    return pc.subtract(pa.concat_arrays([starts[1:], pa.array([end], pa.int64())]), starts)


def _sums(sizes: pa.Array, begins: pa.Array) -> list[int]:
    """What each row's sizes add up to."""
    upto = pc.subtract(pc.cumulative_sum(sizes), sizes).filter(begins)
    sums: list[int] = _gaps(upto, pc.sum(sizes).as_py()).to_pylist()
    return sums
