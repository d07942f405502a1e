"""Rows that say something of each message, its place or its uid: a row for each place. Whole columns at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import sub
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from services.common.ledger.stages import OF_PARTITIONS
from services.common.uid import SEQUENCE_BITS
from services.mgmt.ledger.joined import Joined
from services.mgmt.ledger.numbers import numbers, small
from services.mgmt.ledger.pace import Rest


class Parts(NamedTuple):
    """Rows, each one of the batch or a part of it; the ranges of row i are from offsets[i] up to offsets[i + 1]."""

    rows: list[int]  # of the batch
    places: pa.Array  # those of the batch, and behind them the keyed ones
    sizes: list[int]
    offsets: list[int]
    firsts: pa.Array
    lasts: pa.Array  # the same object where each range is of one

    def __add__(self, other: object) -> Parts:
        """These and others behind them."""
        if not isinstance(other, Parts):
            return NotImplemented
        of_one = self.lasts is self.firsts and other.lasts is other.firsts
        firsts = pa.concat_arrays([self.firsts, other.firsts])
        return Parts(
            rows=[*self.rows, *other.rows],
            places=pa.concat_arrays([self.places, other.places]),
            sizes=[*self.sizes, *other.sizes],
            offsets=[*self.offsets[:-1], *[self.offsets[-1] + each for each in other.offsets]],
            firsts=firsts,
            lasts=firsts if of_one else pa.concat_arrays([self.lasts, other.lasts]),
        )


class _Messages(NamedTuple):
    """Of each, columns: a number for its row and place, uid, bytes."""

    group: pa.Array
    uid: pa.Array
    size: pa.Array

    def by_uid(self) -> _Messages:
        return self._taken(pc.sort_indices(self.uid))

    def in_order(self) -> _Messages:
        # Stable: uids ascend further on. Arrow sorts small numbers in one go.
        return self._taken(pc.sort_indices(self.group))

    def _taken(self, order: pa.Array) -> _Messages:
        return _Messages(*(column.take(order) for column in self))


def parts_of(batch: Joined, offsets: Sequence[int], rest: Rest) -> Parts:
    """Of all such rows, one for each place and origin; `offsets` are those of the ranges of the batch's rows.

    Raises ValueError where columns do not match.
    """
    single = _single(batch)
    rest()
    if not batch.mixtures:
        return single
    parts = _mixed(batch, offsets, rest)
    rest()
    return parts + single


def _parted(messages: _Messages) -> tuple[Parts, pa.Array]:
    """Of messages in the order of their groups. Rows and places are told by who asks, by the group of each."""
    group, uid, size = messages
    begins_row = _differs(group, pc.not_equal)
    if _origin(pc.max(uid)) != _origin(pc.min(uid)):
        begins_row = pc.or_(begins_row, _differs(pc.shift_right(uid, SEQUENCE_BITS), pc.not_equal))
    starts = pc.indices_nonzero(begins_row)
    firsts, lasts, offsets = uid, uid, [*starts.to_pylist(), len(uid)]
    begins_range = pc.or_(begins_row, _differs(uid, _far))
    if pc.all(begins_range).as_py() is False:
        at = pc.indices_nonzero(begins_range)
        firsts, lasts = uid.take(at), uid.take(_ends(at, len(uid)))
        offsets = [*pc.indices_nonzero(begins_row.take(at)).to_pylist(), len(at)]
    sizes = _sums(size, starts)
    return Parts([], uid[:0], sizes, offsets, firsts, lasts), group.take(starts)


def _origin(uid: pa.Scalar) -> int:
    return (uid.as_py() or 0) >> SEQUENCE_BITS


def _mixed(batch: Joined, offsets: Sequence[int], rest: Rest) -> Parts:
    rows: list[int] = []
    counts: list[int] = []
    ranges: list[tuple[int, int]] = []
    for mixture in batch.mixtures:
        its = slice(offsets[mixture.row], offsets[mixture.row + 1])
        rows.append(mixture.row)
        counts.append(sum(batch.lengths[its]))
        if len(mixture.places) != 4 * counts[-1] or len(mixture.sizes) not in {0, len(mixture.places)}:
            raise ValueError("a mixture and its row do not match")
        ranges += zip(batch.firsts[its], batch.lengths[its], strict=True)
    places = _unpacked(pa.uint32(), [each.places for each in batch.mixtures]).cast(pa.int64())
    known = max(each.keys for each in batch.mixtures)
    if (pc.max(places).as_py() or 0) >= known:
        raise ValueError("a mixture of places that are not said")
    sizes = _unpacked(pa.uint32(), [each.sizes or bytes(len(each.places)) for each in batch.mixtures])
    sizes = sizes.cast(pa.int64())
    group = pc.add(_repeated(range(0, known * len(rows), known), counts), places)
    rest()
    messages = _Messages(group, _uids(ranges), sizes).in_order()
    rest()
    parts, groups = _parted(messages)
    which = groups.to_pylist()
    if any(each % known >= batch.mixtures[each // known].keys for each in which):
        raise ValueError("a mixture of places that are not said")
    first = [len(batch.places) + each.first for each in batch.mixtures]
    keyed = numbers([first[each // known] + each % known for each in which])
    return parts._replace(rows=[rows[each // known] for each in which], places=keyed)


def _single(batch: Joined) -> Parts:
    rows, counts = [row for row, count in enumerate(batch.ranges) if not count], list(batch.singles)
    uid = _unpacked(pa.int64(), batch.uids)
    if (pc.min(uid).as_py() or 0) < 0:
        raise ValueError("a uid of more than 63 bits")
    if 0 in counts:
        if any(batch.stages[row] not in OF_PARTITIONS for row, count in zip(rows, counts, strict=True) if not count):
            raise ValueError("a row of no messages")
        rows = [row for row, count in zip(rows, counts, strict=True) if count]
        counts = [count for count in counts if count]
    places, sizes = list(batch.place), list(batch.bytes)
    bounds = list(accumulate(counts, initial=0))
    its_sizes = [sizes[row] for row in rows]
    if _are_ranges(uid, bounds):
        which = numbers([places[row] for row in rows])
        return Parts(rows, which, its_sizes, bounds, uid, uid)
    messages = _Messages(_repeated(range(len(rows)), counts), uid, _with_the_first(its_sizes, counts))
    ascend = pc.or_(_differs(messages.group, pc.not_equal), _differs(uid, pc.greater))
    if pc.all(ascend).as_py() is False:
        messages = messages.by_uid().in_order()
    parts, groups = _parted(messages)
    rows = [rows[each] for each in groups.to_pylist()]
    return parts._replace(rows=rows, places=numbers([places[row] for row in rows]))


def _are_ranges(uid: pa.Array, bounds: Sequence[int]) -> bool:
    """Whether each uid is a range of its own, ascending in rows of one origin each; `bounds` are those of the rows."""
    near = pc.less_equal(pc.subtract(uid[1:], uid[:-1]), 1)
    if _origin(pc.max(uid)) != _origin(pc.min(uid)):
        origin = pc.shift_right(uid, SEQUENCE_BITS)
        near = pc.or_(near, pc.not_equal(origin[1:], origin[:-1]))
    return {each + 1 for each in pc.indices_nonzero(near).to_pylist()} <= set(bounds)


def _with_the_first(sizes: Sequence[int], counts: Sequence[int]) -> pa.Array:
    """Of each of so many messages, the size of all with the first of them."""
    if not any(sizes):
        return pa.repeat(pa.scalar(0, pa.int64()), sum(counts))
    found = [size for first, count in zip(sizes, counts, strict=True) for size in (first, *[0] * (count - 1))]
    return numbers(found)


def _unpacked(kind: pa.DataType, packed: Sequence[bytes]) -> pa.Array:
    joined = b"".join(packed)
    count = len(joined) // (kind.bit_width // 8)
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(joined)])


def _uids(ranges: list[tuple[int, int]]) -> pa.Array:
    """All that ranges (the first, how many) have, one after the other."""
    lengths = [length for _, length in ranges]
    index = pa.arange(0, sum(lengths))
    before = accumulate(lengths, initial=0)
    return pc.add(index, _repeated([first - start for (first, _), start in zip(ranges, before, strict=False)], lengths))


def _repeated(values: Sequence[int], counts: Sequence[int]) -> pa.Array:
    """Each value as often as its count says."""
    ends = small(accumulate(counts))
    return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, numbers(values)))


def _differs(column: pa.Array, how: object) -> pa.Array:
    """Of each value, whether it differs from the one before it; the first does."""
    differ = how(column[1:], column[:-1])  # type: ignore[operator]
    return pa.concat_arrays([pa.array([True] * bool(len(column)), pa.bool_()), differ])


def _far(later: pa.Array, before: pa.Array) -> pa.Array:
    return pc.not_equal(pc.subtract(later, before), 1)


def _ends(starts: pa.Array, end: int) -> pa.Array:
    """Where what begins there has its last; the last of them at the end."""
    following = pa.concat_arrays([starts[1:], pa.array([end], starts.type)])
    return pc.subtract(following, pa.scalar(1, starts.type)) if len(starts) else starts


def _sums(sizes: pa.Array, starts: pa.Array) -> list[int]:
    """What each row's sizes add up to."""
    if not len(starts):
        return []
    upto = pc.cumulative_sum(sizes).take(_ends(starts, len(sizes))).to_pylist()
    return [*map(sub, upto, [0, *upto])]
