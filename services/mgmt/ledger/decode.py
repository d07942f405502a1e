"""From a batch on the wire to rows of the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from services.common.ledger import stages
from services.common.ledger.stages import GOING_ON
from services.common.uid import SEQUENCE_BITS
from services.mgmt.ledger.arrow_errors import as_known_errors
from services.mgmt.ledger.ids import ids_of
from services.mgmt.ledger.one_by_one import Parts, parts_of
from services.mgmt.ledger.pace import Rest, no_rest
from services.mgmt.ledger.schema import CONNECTIONS, PAYLOADS, STAGES, TIME, UIDS
from services.rpc.ledger_pb2 import LedgerBatch

_TEXTS = ("virtual_host", "exchange", "routing_key", "queue", "protocol", "connection", "client", "consumer", "target")
_OF_CONNECTIONS = ("virtual_host", "protocol", "connection", "client", "user", "peer")
_OF_PLACES = ("virtual_host", "exchange", "routing_key", "queue", "connection", "client", "consumer")
_STAGES = pa.array(stages.NAMES)


class Rows(NamedTuple):
    """What one batch has for the tables of these names."""

    stages: pa.Table
    ids: pa.Table
    connections: pa.Table
    payloads: pa.Table


@as_known_errors()
def decode(batch: LedgerBatch, rest: Rest = no_rest) -> Rows:
    """Raises ValueError or LookupError for a batch that contradicts itself."""
    uids = _Uids(batch)
    rest()
    return Rows(uids.table(rest), ids_of(batch, rest), _connections(batch), _payloads(batch))


class _Uids:
    """Builds the table of a batch's rows: most have one range; few become several: of several origins, or places."""

    def __init__(self, batch: LedgerBatch) -> None:
        self._batch = batch
        self._firsts = pa.array(list(batch.firsts), pa.int64())
        self._lengths = pa.array(list(batch.lengths), pa.int64())
        self._lasts = pc.subtract(pc.add(self._firsts, self._lengths), 1)
        counts = list(batch.ranges)
        self._offsets = list(accumulate(counts, initial=0))
        if self._offsets[-1] != len(self._firsts):
            raise ValueError("rows and ranges do not match")
        self._rows: Sequence[int] = range(len(counts))
        parts = None
        if batch.mixtures or not all(counts):
            parts = parts_of(batch, self._offsets)
            self._leave_out({*parts.rows})
        origins = pc.min_max(pc.shift_right(self._firsts, SEQUENCE_BITS))
        if origins["min"] != origins["max"]:
            self._split(pc.shift_right(self._firsts, SEQUENCE_BITS).to_pylist())
        self._sizes = self._bytes()
        self._which = pa.array(list(batch.place), pa.int64()).take(pa.array(self._rows, pa.int64()))
        if parts:
            self._join(parts)
        self._taken = pa.array(self._rows, pa.int32())
        self._single = self._offsets == [*range(len(self._rows) + 1)]  # each row has one range, as most have

    def _leave_out(self, rows: set[int]) -> None:
        self._rows = [row for row in self._rows if row not in rows]
        bounds = [(self._offsets[row], self._offsets[row + 1]) for row in self._rows]
        left = pa.array(chain.from_iterable([range(*each) for each in bounds]), pa.int64())
        self._offsets = list(accumulate([end - start for start, end in bounds], initial=0))
        self._firsts, self._lengths, self._lasts = (
            column.take(left) for column in (self._firsts, self._lengths, self._lasts)
        )

    def _join(self, parts: Parts) -> None:
        self._which = pa.concat_arrays([self._which, parts.places])
        self._sizes = [*self._sizes, *parts.sizes]
        self._rows = [*self._rows, *parts.rows]
        self._offsets = [*self._offsets[:-1], *[self._offsets[-1] + each for each in parts.offsets]]
        self._firsts = pa.concat_arrays([self._firsts, parts.firsts])
        self._lengths = pa.concat_arrays([self._lengths, parts.lengths])
        self._lasts = pc.subtract(pc.add(self._firsts, self._lengths), 1)

    def _split(self, origins: list[int]) -> None:
        """A row for each origin."""
        rows: list[int] = []
        offsets = [0]
        for row, (start, end) in enumerate(zip(self._offsets, self._offsets[1:], strict=False)):
            for at in range(start + 1, max(start + 1, end) + 1):
                if at >= end or origins[at] != origins[at - 1]:
                    rows.append(self._rows[row])
                    offsets.append(min(at, end))
        self._rows, self._offsets = rows, offsets

    def table(self, rest: Rest) -> pa.Table:
        columns: dict[str, pa.Array] = {}
        for some in (self._origins, self._places, self._facts, self._ranges):
            columns |= some()
            rest()
        return pa.table([columns[name] for name in STAGES.names], schema=STAGES)

    def _origins(self) -> dict[str, pa.Array]:
        batch, rows = self._batch, self._rows
        return {
            "time": pa.array(list(batch.times_us), TIME).take(self._taken),
            "service": _constant(batch.service, len(rows)),
            "instance": _constant(batch.instance, len(rows)),
            "row": pc.add(self._taken.cast(pa.int64()), batch.first_row),
        }

    def _facts(self) -> dict[str, pa.Array]:
        batch, words = self._batch, pa.array(self._batch.words, pa.string())
        return {
            "stage": _repeated(self._indices(batch.stages), _STAGES),
            "outcome": _repeated(self._indices(batch.outcome), words),
            "reason": _repeated(self._indices(batch.reason), words),
            "bytes": pa.array(self._sizes, pa.int64()),
        }

    def _indices(self, column: Sequence[int]) -> pa.Array:
        return pa.array(list(column), pa.int32()).take(self._taken)

    def _bytes(self) -> list[int]:
        """Of a row that became several, with the first."""
        sizes = list(self._batch.bytes)
        if isinstance(self._rows, range):
            return sizes
        sizes = [sizes[row] for row in self._rows]
        return [0 if index and row == self._rows[index - 1] else sizes[index] for index, row in enumerate(self._rows)]

    def _places(self) -> dict[str, pa.Array]:
        batch, places = self._batch, list(self._batch.places)
        which = pa.array([*range(len(places)), *batch.bases], pa.int32()).take(self._which)
        columns = {
            name: _repeated(which, pa.array([getattr(place, name) for place in places], pa.string())) for name in _TEXTS
        }
        for name, kind in (("partition", pa.int32()), ("epoch", pa.int64()), ("attempt", pa.int32())):
            columns[name] = pa.array([getattr(place, name) for place in places], kind).take(which)
        keys = pa.array([*[place.routing_key for place in places], *batch.keys], pa.string())
        columns["routing_key"] = _repeated(self._which.cast(pa.int32()), keys)
        return columns

    def _ranges(self) -> dict[str, pa.Array]:
        begins, ends = pa.array(self._offsets[:-1], pa.int32()), pa.array(self._offsets[1:], pa.int32())
        counts, lowest, highest = self._lengths, self._firsts, self._lasts
        if not self._single:
            before = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(self._lengths)])
            counts = pc.subtract(before.take(ends), before.take(begins))
            begin = pc.if_else(pc.greater(ends, begins), begins, None)  # null where there are no messages
            end = pc.subtract(pc.if_else(pc.greater(ends, begins), ends, None), 1)
            lowest, highest = lowest.take(begin), highest.take(end)
            if not GOING_ON.isdisjoint(self._batch.stages):  # all others ascend
                lowest = pa.array([pc.min(part).as_py() for part in self._parts(self._firsts)], pa.int64())
                highest = pa.array([pc.max(part).as_py() for part in self._parts(self._lasts)], pa.int64())
        return {
            "count": counts.cast(pa.int32()),
            "first_uid": lowest,
            "last_uid": highest,
            "uids": _lists(self._offsets, self._firsts, self._lasts),
            "successors": self._successors(),
        }

    def _parts(self, column: pa.Array) -> Iterator[pa.Array]:
        return (column[start:end] for start, end in self._bounds())

    def _bounds(self) -> Iterator[tuple[int, int]]:
        return zip(self._offsets, self._offsets[1:], strict=False)

    def _successors(self) -> pa.Array:
        """Range by range as long as those that they follow."""
        follow = {each.row - self._batch.first_row: list(each.firsts) for each in self._batch.successions}
        firsts: list[int] = []
        lasts: list[int] = []
        offsets = [0]
        used: dict[int, int] = {}
        if not follow:
            return _lists([0] * (len(self._rows) + 1), pa.array([], pa.int64()), pa.array([], pa.int64()))
        lengths = self._lengths.to_pylist()
        for row, (start, end) in zip(self._rows, self._bounds(), strict=True):
            if row in follow and self._batch.stages[row] in GOING_ON:
                begin = used.get(row, 0)
                used[row] = begin + end - start
                its = follow[row][begin : used[row]]
                firsts += its
                lasts += [first + length - 1 for first, length in zip(its, lengths[start:end], strict=True)]
            offsets.append(len(firsts))
        return _lists(offsets, pa.array(firsts, pa.int64()), pa.array(lasts, pa.int64()))


def _lists(offsets: list[int], firsts: pa.Array, lasts: pa.Array) -> pa.Array:
    structs = pa.StructArray.from_arrays([firsts, lasts], fields=list(UIDS.value_type))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=UIDS)


def _repeated(indices: pa.Array, values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(indices, values, safe=True)


def _constant(value: str, count: int) -> pa.Array:
    return _repeated(pa.repeat(pa.scalar(0, pa.int32()), count), pa.array([value]))


def _connections(batch: LedgerBatch) -> pa.Table:
    by = {"service": batch.service, "instance": batch.instance}
    rows = [
        {**by, "time": each.time_us, **{name: getattr(each, name) for name in _OF_CONNECTIONS}}
        for each in batch.connections
    ]
    return pa.Table.from_pylist(rows, CONNECTIONS)


def _payloads(batch: LedgerBatch) -> pa.Table:
    by = {"service": batch.service, "instance": batch.instance}
    rows = [
        {
            **by,
            "time": each.time_us,
            "stage": stages.NAMES[each.stage],
            **{name: getattr(each.place, name) for name in _OF_PLACES},
            **{name: getattr(each, name) for name in ("rule", "uid", "format", "properties", "body", "size")},
        }
        for each in batch.captured
    ]
    return pa.Table.from_pylist(rows, PAYLOADS)
