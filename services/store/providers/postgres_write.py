"""How one `Changes` becomes the arguments of the database's function `write`: a column for each array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from services.store.provider import Changes, LeaseRow, RecordRow

_FENCE = 3  # epoch, number of the group, stamp
_ARRAYS = 46

WRITE = f"SELECT write({', '.join(f'${number}' for number in range(1, _FENCE + _ARRAYS + 1))})"

_SIGN = 1 << 63
_MODULUS = 1 << 64

Column = Sequence[Any]


def arguments(changes: Changes) -> list[Column]:
    """The arguments of `write` behind the fence, in its order."""
    return [
        changes.dead_batches,
        changes.dead_contents,
        *_columns(changes.contents.items(), 2),
        *_columns(changes.blanked.items(), 2),
        *_columns(changes.entries.values(), 5),
        *_columns(changes.dequeues, 3),
        *_columns(changes.delivered.items(), 2),
        *_columns(changes.replaced, 2),
        *_columns(changes.taken, 5),
        *_columns(((*key, uid) for key, uid in changes.floors.items()), 3),
        *_columns(changes.writers.items(), 2),
        *_columns(changes.refusals, 3),
        *_columns(((signed(number), committed) for number, committed in changes.outcomes.items()), 2),
        *_columns(map(_lease, changes.leases.values()), 5),
        [digest(*key) for key, row in changes.records.items() if row is None],
        *_columns((_record(row) for row in changes.records.values() if row is not None), 5),
        *_columns(_counters(changes), 2),
    ]


def weight(changes: Changes) -> int:
    """The size of the changes in bytes, roughly."""
    return sum(map(len, changes.contents.values())) + sum(map(len, changes.blanked.values()))


def signed(transaction: int) -> int:
    """A transaction's id, an unsigned 64-bit number, as a signed bigint."""
    return transaction - _MODULUS if transaction >= _SIGN else transaction


def unsigned(kept: int) -> int:
    """The inverse of `signed`."""
    return kept + _MODULUS if kept < 0 else kept


def digest(kind: str, key: str) -> bytes:
    """The digest of a record's kind and key, by which its row is found."""
    first = kind.encode()
    return sha256(len(first).to_bytes(4, "big") + first + key.encode()).digest()


def _columns(rows: Iterable[Iterable[Any]], width: int) -> list[Column]:
    return list(zip(*rows, strict=True)) or [()] * width


def _lease(row: LeaseRow) -> tuple[bytes, int, bytes, bytes, bytes]:
    return row.name.encode(), row.epoch, row.member.encode(), row.role.encode(), row.address.encode()


def _record(row: RecordRow) -> tuple[bytes, bytes, bytes, bytes, int]:
    return digest(row.kind, row.key), row.kind.encode(), row.key.encode(), row.value, row.version


def _counters(changes: Changes) -> list[tuple[str, int]]:
    counters = (("origin", changes.origin), ("running", changes.running), ("incarnation", changes.incarnation))
    return [(name, value) for name, value in counters if value]
