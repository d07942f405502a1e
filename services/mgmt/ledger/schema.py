"""The tables of the ledger, as services/common/ledger/README.md describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from services.mgmt.ledger.tables import NAMES

_TIME: Final = pa.timestamp("us", tz="UTC")
_UIDS: Final = pa.list_(
    pa.field(
        "element",
        pa.struct([pa.field("first", pa.int64(), nullable=False), pa.field("last", pa.int64(), nullable=False)]),
        nullable=False,
    )
)
_TEXT: Final = pa.string()
REPEATED: Final = pa.dictionary(pa.int32(), _TEXT)
"""Text as it is kept in memory where few values come again and again; files have plain text."""

STAGES: Final = pa.schema(
    {
        "time": _TIME,
        "stage": REPEATED,
        "service": REPEATED,
        "instance": REPEATED,
        "row": pa.int64(),
        "virtual_host": REPEATED,
        "exchange": REPEATED,
        "routing_key": REPEATED,
        "queue": REPEATED,
        "partition": pa.int32(),
        "epoch": pa.int64(),
        "protocol": REPEATED,
        "connection": REPEATED,
        "client": REPEATED,
        "consumer": REPEATED,
        "attempt": pa.int32(),
        "outcome": REPEATED,
        "reason": REPEATED,
        "target": REPEATED,
        "count": pa.int32(),
        "bytes": pa.int64(),
        "first_uid": pa.int64(),
        "last_uid": pa.int64(),
        "uids": _UIDS,
        "successors": _UIDS,
    }
)
IDS: Final = pa.schema({"id": _TEXT, "kind": REPEATED, "first_uid": pa.int64(), "last_uid": pa.int64(), "time": _TIME})
GAPS: Final = pa.schema(
    {
        "time": _TIME,
        "service": _TEXT,
        "instance": _TEXT,
        "first_row": pa.int64(),
        "last_row": pa.int64(),
        "count": pa.int64(),
        "reason": _TEXT,
        "since": _TIME,
    }
)
CONNECTIONS: Final = pa.schema(
    {
        "time": _TIME,
        "service": REPEATED,
        "instance": REPEATED,
        "virtual_host": REPEATED,
        "protocol": REPEATED,
        "connection": _TEXT,
        "client": REPEATED,
        "user": REPEATED,
        "peer": _TEXT,
    }
)
PAYLOADS: Final = pa.schema(
    {
        "time": _TIME,
        "service": REPEATED,
        "instance": REPEATED,
        "stage": REPEATED,
        "virtual_host": REPEATED,
        "exchange": REPEATED,
        "routing_key": REPEATED,
        "queue": REPEATED,
        "connection": REPEATED,
        "client": REPEATED,
        "consumer": REPEATED,
        "rule": REPEATED,
        "uid": pa.int64(),
        "format": REPEATED,
        "properties": pa.binary(),
        "body": pa.binary(),
        "size": pa.int64(),
    }
)
TABLES: Final[Mapping[str, pa.Schema]] = dict(zip(NAMES, (STAGES, IDS, GAPS, CONNECTIONS, PAYLOADS), strict=True))
SORTED_BY: Final[Mapping[str, str]] = {
    "stages": "first_uid",
    "ids": "id",
    "gaps": "time",
    "connections": "connection",
    "payloads": "uid",
}
ROW_GROUP: Final[Mapping[str, int]] = {
    "stages": 65_536,
    "ids": 8_192,
    "gaps": 65_536,
    "connections": 8_192,
    "payloads": 256,
}
"""Rows that are read at least. Ids lie in no order of time: every file may have one, and has to be looked into."""
FEW_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "stages": ("partition", "epoch", "attempt", "count", "bytes"),
    "ids": (),
    "gaps": (),
    "connections": (),
    "payloads": ("size",),
}
"""Columns of numbers that come again and again."""
NUMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "stages": (),
    "ids": ("first_uid", "last_uid"),
    "gaps": (),
    "connections": (),
    "payloads": (),
}
"""Columns that are kept as small differences, and not compressed: which ids a uid has is found by reading all uids of a
file, which lie in no order. That takes a third of the time, and a tenth more space."""
STEPS: Final[Mapping[str, tuple[str, ...]]] = {
    "stages": tuple(f"{name}.list.element.{end}" for name in ("uids", "successors") for end in ("first", "last")),
    "ids": (),
    "gaps": (),
    "connections": (),
    "payloads": (),
}
"""Columns, or parts of them, that are kept as differences too, and compressed: messages to many queues in turn are
uids at even steps. That takes half the time of plain numbers, and a fortieth of their space."""
UIDS: Final = _UIDS
TIME: Final = _TIME
