"""From a batch on the wire to rows of the table of ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

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
    tables: list[pa.Table] = []
    for identified in batch.identified:
        tables += _tables(identified, max(batch.times_us))
        rest()
    return pa.concat_tables(tables) if tables else IDS.empty_table()


def _tables(identified: Identified, time_us: int) -> Iterator[pa.Table]:
    """For each kind of id; what cannot be read has none."""
    column, uids = list(identified.properties), list(identified.uids)
    if not column and not uids:
        return
    one_for_all = len(column) == 1
    if not one_for_all and len(column) != len(uids):
        raise ValueError("uids and properties do not match")
    for named in map(_askable, format_named(identified.format).identities_of(column)):
        if one_for_all:
            firsts, lengths = (pa.array(column, pa.int64()) for column in compress(uids))
            lasts = pc.subtract(pc.add(firsts, lengths), 1)
            for name in named.ids:
                yield _table([name] * len(firsts), named.kind, firsts, lasts, time_us)
        else:
            its = pa.array(pick(uids, named.indexes), pa.int64())
            yield _table(named.ids, named.kind, its, its, time_us)


def _askable(named: Named) -> Named:
    """Nobody can ask for longer ones; and a file with one says nothing of where its ids begin and end."""
    kind, indexes, ids = named
    if not ids or max(map(len, ids)) <= LONGEST_ID:
        return named
    short = [at for at, name in enumerate(ids) if len(name) <= LONGEST_ID]
    return Named(kind, pick(indexes, short), pick(ids, short))


def _table(ids: Sequence[str], kind: str, firsts: pa.Array, lasts: pa.Array, time_us: int) -> pa.Table:
    count = len(ids)
    columns = [
        pa.array(ids, pa.string()),
        pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), pa.array([kind])),
        firsts,
        lasts,
        pa.repeat(pa.scalar(time_us, TIME), count),
    ]
    return pa.table(columns, schema=IDS)
