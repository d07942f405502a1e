"""From batches on the wire to rows of the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from operator import attrgetter, sub
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from services.common.ledger import stages
from services.common.ledger.stages import GOING_ON
from services.common.uid import SEQUENCE_BITS
from services.mgmt.ledger.arrow_errors import as_known_errors
from services.mgmt.ledger.ids import ids_of
from services.mgmt.ledger.joined import Joined, joined
from services.mgmt.ledger.numbers import numbers, small
from services.mgmt.ledger.one_by_one import Parts, parts_of
from services.mgmt.ledger.pace import Rest, no_rest
from services.mgmt.ledger.schema import CONNECTIONS, PAYLOADS, STAGES, TIME, UIDS
from services.rpc.ledger_pb2 import LedgerBatch

_TEXTS = ("virtual_host", "exchange", "routing_key", "queue", "protocol", "connection", "client", "consumer", "target")
_NUMBERS: Mapping[str, Callable[[Iterable[int]], pa.Array]] = {"partition": small, "epoch": numbers, "attempt": small}
_PLACE = (*_TEXTS, *_NUMBERS)
_OF_CONNECTIONS = ("virtual_host", "protocol", "connection", "client", "user", "peer")
_OF_PLACES = ("virtual_host", "exchange", "routing_key", "queue", "connection", "client", "consumer")
_STAGES = pa.array(stages.NAMES)


class Rows(NamedTuple):
    """What batches have for the tables of these names."""

    stages: pa.Table
    ids: pa.Table
    connections: pa.Table
    payloads: pa.Table


@as_known_errors()
def decode(batches: Sequence[LedgerBatch], rest: Rest = no_rest) -> Rows:
    """Raises ValueError or LookupError where one contradicts itself."""
    uids = _Uids(joined(batches, rest), rest)
    rest()
    stages_of_all = uids.table(rest)
    ids = pa.concat_tables([ids_of(batch, rest) for batch in batches])
    return Rows(stages_of_all, ids, _connections(batches), _payloads(batches))


class _Uids:
    """Builds the table of batches' rows: most have one range; few become several: of several origins, or places."""

    def __init__(self, batch: Joined, rest: Rest) -> None:
        self._batch = batch
        self._firsts = numbers(batch.firsts)
        self._lasts = pc.subtract(pc.add(self._firsts, numbers(batch.lengths)), 1)
        counts = batch.ranges
        self._offsets = list(accumulate(counts, initial=0))
        self._rows: Sequence[int] = range(len(counts))
        parts = None
        if batch.mixtures or not all(counts):
            parts = parts_of(batch, self._offsets, rest)
            self._leave_out({*parts.rows})
        origins = pc.min_max(pc.shift_right(self._firsts, SEQUENCE_BITS))
        if origins["min"] != origins["max"]:
            self._split(pc.shift_right(self._firsts, SEQUENCE_BITS).to_pylist())
        self._sizes = self._bytes()
        self._which = numbers(batch.place).take(numbers(self._rows))
        if parts:
            self._join(parts)
        self._taken = small(self._rows)
        self._single = self._offsets == [*range(len(self._rows) + 1)]  # each row has one range, as most have

    def _leave_out(self, rows: set[int]) -> None:
        self._rows = [row for row in self._rows if row not in rows]
        bounds = [(self._offsets[row], self._offsets[row + 1]) for row in self._rows]
        left = numbers(chain.from_iterable([range(*each) for each in bounds]))
        self._offsets = list(accumulate([end - start for start, end in bounds], initial=0))
        self._firsts, self._lasts = self._firsts.take(left), self._lasts.take(left)

    def _join(self, parts: Parts) -> None:
        its = Parts([*self._rows], self._which, self._sizes, self._offsets, self._firsts, self._lasts)
        self._rows, self._which, self._sizes, self._offsets, self._firsts, self._lasts = (
            its + parts if its.rows else parts
        )

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
        batch, origin = self._batch, self._indices(self._batch.origin)
        return {
            "time": numbers(batch.times_us).cast(TIME).take(self._taken),
            "service": _repeated(origin, pa.array(batch.service, pa.string())),
            "instance": _repeated(origin, pa.array(batch.instance, pa.string())),
            "row": numbers(batch.row).take(self._taken),
        }

    def _facts(self) -> dict[str, pa.Array]:
        batch, words = self._batch, pa.array(self._batch.words, pa.string())
        return {
            "stage": _repeated(self._indices(batch.stages), _STAGES),
            "outcome": _repeated(self._indices(batch.outcome), words),
            "reason": _repeated(self._indices(batch.reason), words),
            "bytes": numbers(self._sizes),
        }

    def _indices(self, column: Sequence[int]) -> pa.Array:
        return small(column).take(self._taken)

    def _bytes(self) -> list[int]:
        """Of a row that became several, with the first."""
        sizes = self._batch.bytes
        if isinstance(self._rows, range):
            return sizes
        sizes = [sizes[row] for row in self._rows]
        return [0 if index and row == self._rows[index - 1] else sizes[index] for index, row in enumerate(self._rows)]

    def _places(self) -> dict[str, pa.Array]:
        batch, places = self._batch, self._batch.places
        which = small([*range(len(places)), *batch.bases]).take(self._which)
        facts = dict(zip(_PLACE, zip(*map(attrgetter(*_PLACE), places), strict=True), strict=False))
        columns = {name: _repeated(which, pa.array(facts.get(name, ()), pa.string())) for name in _TEXTS}
        for name, column in _NUMBERS.items():
            columns[name] = column(facts.get(name, ())).take(which)
        keys = pa.array([*facts.get("routing_key", ()), *batch.keys], pa.string())
        columns["routing_key"] = _repeated(self._which.cast(pa.int32()), keys)
        return columns

    def _ranges(self) -> dict[str, pa.Array]:
        begins, ends = small(self._offsets[:-1]), small(self._offsets[1:])
        counts, lowest, highest = self._counts(), self._firsts, self._lasts
        if not self._single:
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

    def _counts(self) -> pa.Array:
        if self._lasts is self._firsts:
            return small(map(sub, self._offsets[1:], self._offsets))
        lengths = self._lengths()
        if self._single:
            return lengths
        before = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
        return pc.subtract(before.take(small(self._offsets[1:])), before.take(small(self._offsets[:-1])))

    def _lengths(self) -> pa.Array:
        return pc.add(pc.subtract(self._lasts, self._firsts), 1)

    def _parts(self, column: pa.Array) -> Iterator[pa.Array]:
        return (column[start:end] for start, end in self._bounds())

    def _bounds(self) -> Iterator[tuple[int, int]]:
        return zip(self._offsets, self._offsets[1:], strict=False)

    def _successors(self) -> pa.Array:
        """Range by range as long as those that they follow."""
        follow = self._batch.successions
        firsts: list[int] = []
        lasts: list[int] = []
        offsets = [0]
        used: dict[int, int] = {}
        if not follow:
            return _lists([0] * (len(self._rows) + 1), numbers(()), numbers(()))
        lengths = self._lengths().to_pylist()
        for row, (start, end) in zip(self._rows, self._bounds(), strict=True):
            if row in follow and self._batch.stages[row] in GOING_ON:
                begin = used.get(row, 0)
                used[row] = begin + end - start
                its = follow[row][begin : used[row]]
                firsts += its
                lasts += [first + length - 1 for first, length in zip(its, lengths[start:end], strict=True)]
            offsets.append(len(firsts))
        return _lists(offsets, numbers(firsts), numbers(lasts))


def _lists(offsets: list[int], firsts: pa.Array, lasts: pa.Array) -> pa.Array:
    structs = pa.StructArray.from_arrays([firsts, lasts], fields=list(UIDS.value_type))
    return pa.ListArray.from_arrays(small(offsets), structs, type=UIDS)


def _repeated(indices: pa.Array, values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(indices, values, safe=True)


def _connections(batches: Sequence[LedgerBatch]) -> pa.Table:
    rows = [
        {**_by(batch), "time": each.time_us, **{name: getattr(each, name) for name in _OF_CONNECTIONS}}
        for batch in batches
        for each in batch.connections
    ]
    return pa.Table.from_pylist(rows, CONNECTIONS)


def _payloads(batches: Sequence[LedgerBatch]) -> pa.Table:
    rows = [
        {
            **_by(batch),
            "time": each.time_us,
            "stage": stages.NAMES[each.stage],
            **{name: getattr(each.place, name) for name in _OF_PLACES},
            **{name: getattr(each, name) for name in ("rule", "uid", "format", "properties", "body", "size")},
        }
        for batch in batches
        for each in batch.captured
    ]
    return pa.Table.from_pylist(rows, PAYLOADS)


def _by(batch: LedgerBatch) -> dict[str, str]:
    return {"service": batch.service, "instance": batch.instance}
