"""From a batch on the wire to rows of the table of ids."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from services.common.ledger.uid_ranges import compress
from services.common.message import format_named
from services.common.message.identities import Named
from services.common.message.indexes import pick
from services.common.question import LONGEST_ID
from services.mgmt.ledger.pace import Rest
from services.mgmt.ledger.schema import IDS, TIME
from services.rpc.ledger_pb2 import Identified, LedgerBatch


def ids_of(batch: LedgerBatch, rest: Rest) -> pa.Table:
    """Raises ValueError for messages and properties that do not match."""
    columns = _Columns()
    for identified in batch.identified:
        _add(columns, identified)
        rest()
    return columns.table(max(batch.times_us)) if columns.ids else IDS.empty_table()


class _Columns:
    """Arrow has them all at once: many are of a message or two."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._kinds: dict[str, int] = {}
        self._kind: list[int] = []
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, kind: str, ids: Sequence[str], firsts: Sequence[int], lasts: Sequence[int]) -> None:
        self.ids += ids
        self._kind += [self._kinds.setdefault(kind, len(self._kinds))] * len(ids)
        self._firsts += firsts
        self._lasts += lasts

    def table(self, time_us: int) -> pa.Table:
        columns = [
            pa.array(self.ids, pa.string()),
            pa.DictionaryArray.from_arrays(pa.array(self._kind, pa.int32()), pa.array(list(self._kinds), pa.string())),
            pa.array(self._firsts, pa.int64()),
            pa.array(self._lasts, pa.int64()),
            pa.repeat(pa.scalar(time_us, TIME), len(self.ids)),
        ]
        return pa.table(columns, schema=IDS)


def _add(columns: _Columns, identified: Identified) -> None:
    """What cannot be read has none."""
    column, uids = list(identified.properties), list(identified.uids)
    if not column and not uids:
        return
    one_for_all = len(column) == 1 < len(uids)
    if not one_for_all and len(column) != len(uids):
        raise ValueError("uids and properties do not match")
    firsts, lengths = compress(uids) if one_for_all else ((), ())
    for kind, indexes, ids in map(_askable, format_named(identified.format).identities_of(column)):
        if one_for_all:
            for name in ids:
                columns.add(kind, [name] * len(firsts), firsts, list(map(_last, firsts, lengths)))
        else:
            its = pick(uids, indexes)
            columns.add(kind, ids, its, its)


def _last(first: int, length: int) -> int:
    return first + length - 1


def _askable(named: Named) -> Named:
    """Nobody can ask for longer ones; and a file with one says nothing of where its ids begin and end."""
    kind, indexes, ids = named
    if not ids or max(map(len, ids)) <= LONGEST_ID:
        return named
    short = [at for at, name in enumerate(ids) if len(name) <= LONGEST_ID]
    return Named(kind, pick(indexes, short), pick(ids, short))
