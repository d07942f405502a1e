"""Small ledgers on disk, as services/common/ledger/README.md describes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

_RANGES = pa.list_(pa.struct([("first", pa.int64()), ("last", pa.int64())]))
_TIME = pa.timestamp("us", "UTC")
_TEXTS = ("stage", "service", "instance", "virtual_host", "exchange", "routing_key", "queue", "protocol", "connection")
_OF_CONNECTIONS = ("service", "instance", "virtual_host", "protocol", "connection", "client", "user", "peer")
_MORE_TEXTS = ("client", "consumer", "outcome", "reason", "target")

SCHEMAS = {
    "stages": pa.schema(
        [
            ("time", _TIME),
            *((name, pa.string()) for name in (*_TEXTS, *_MORE_TEXTS)),
            ("row", pa.int64()),
            ("partition", pa.int32()),
            ("epoch", pa.int64()),
            ("attempt", pa.int32()),
            ("count", pa.int32()),
            ("bytes", pa.int64()),
            ("first_uid", pa.int64()),
            ("last_uid", pa.int64()),
            ("uids", _RANGES),
            ("successors", _RANGES),
        ]
    ),
    "ids": pa.schema(
        [
            ("id", pa.string()),
            ("kind", pa.string()),
            ("first_uid", pa.int64()),
            ("last_uid", pa.int64()),
            ("time", _TIME),
        ]
    ),
    "gaps": pa.schema(
        [
            ("time", _TIME),
            ("service", pa.string()),
            ("instance", pa.string()),
            ("first_row", pa.int64()),
            ("last_row", pa.int64()),
            ("count", pa.int64()),
            ("reason", pa.string()),
        ]
    ),
    "connections": pa.schema([("time", _TIME), *((name, pa.string()) for name in _OF_CONNECTIONS)]),
}

ORIGIN = 1 << 39
NOON = int(datetime(2026, 8, 21, 12, 30, tzinfo=UTC).timestamp()) * 1_000_000
HOUR = 3_600_000_000
MS = 1_000

_GATEWAY_STAGES = {"received", "routed", "returned", "confirmed", "refused", "sent", "rolled_back"}


def uid(number: int) -> int:
    """The uid of the origin's message `number`."""
    return ORIGIN + number


@dataclass
class LedgerFiles:
    """Rows are gathered by `stage`, `named` and `gap`, and written by `file`; times are microseconds since NOON."""

    folder: Path
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in SCHEMAS})
    numbers: dict[str, int] = field(default_factory=dict)

    def stage(self, name: str, *uids: int | tuple[int, int], at: int = 0, **facts: Any) -> None:
        """A row of `stages`; uids are single ones or inclusive ranges."""
        service = facts.pop("service", "gateway" if name in _GATEWAY_STAGES else "queue")
        instance = facts.pop("instance", f"{service}-1")
        self.numbers[instance] = self.numbers.get(instance, 0) + 1
        ranges = _ranges(uids)
        edges = {"first_uid": None, "last_uid": None}  # of a row about a partition
        if ranges:
            edges = {"first_uid": min(one["first"] for one in ranges), "last_uid": max(one["last"] for one in ranges)}
        self.rows["stages"].append(
            {
                **dict.fromkeys((*_TEXTS, *_MORE_TEXTS), ""),
                "epoch": 0,
                "attempt": 0,
                "bytes": 0,
                "partition": -1,
                "virtual_host": "/",
                "time": NOON + at,
                "stage": name,
                "service": service,
                "instance": instance,
                "row": self.numbers[instance],
                "count": sum(one["last"] - one["first"] + 1 for one in ranges),
                **edges,
                "uids": ranges,
                **facts,
                "successors": _ranges(facts.get("successors", ())),
            }
        )

    def named(self, name: str, first: int, last: int | None = None, kind: str = "message_id", at: int = 0) -> None:
        """A row of `ids`."""
        last_uid = first if last is None else last
        row = {"id": name, "kind": kind, "first_uid": first, "last_uid": last_uid, "time": NOON + at}
        self.rows["ids"].append(row)

    def gap(self, instance: str, at: int = 0, reason: str = "given_up", since: int | None = None) -> None:
        """A row of `gaps`; `since` None: as older releases file it."""
        row = {"service": instance.partition("-")[0], "instance": instance, "first_row": 5, "last_row": 7, "count": 3}
        begins = {} if since is None else {"since": NOON + since}
        self.rows["gaps"].append({**row, "time": NOON + at, "reason": reason, **begins})

    def connection(self, name: str, user: str, peer: str, at: int = 0, instance: str = "gateway-1") -> None:
        """A row of `connections`."""
        row = {**dict.fromkeys(_OF_CONNECTIONS, ""), "service": "gateway", "instance": instance, "virtual_host": "/"}
        self.rows["connections"].append({**row, "time": NOON + at, "connection": name, "user": user, "peer": peer})

    def tables(self) -> dict[str, pa.Table]:
        """What was gathered, as tables; nothing is gathered afterwards."""
        tables = {name: pa.Table.from_pylist(rows, SCHEMAS[name]) for name, rows in self.rows.items()}
        for rows in self.rows.values():
            rows.clear()
        return tables

    def file(self, name: str = "a.parquet") -> None:
        """Writes what was gathered, each row into the folder of its hour."""
        for table, rows in self.rows.items():
            for hour in sorted({row["time"] // HOUR for row in rows}):
                folder = self.folder / table / f"{datetime.fromtimestamp(hour * 3600, UTC):date=%Y-%m-%d/hour=%H}"
                folder.mkdir(parents=True, exist_ok=True)
                of_hour = [row for row in rows if row["time"] // HOUR == hour]
                schema = SCHEMAS[table]
                if any("since" in row for row in of_hour):
                    schema = schema.append(pa.field("since", _TIME))
                pq.write_table(pa.Table.from_pylist(of_hour, schema), folder / name)
            rows.clear()


def _ranges(uids: Any) -> list[dict[str, int]]:
    pairs = (one if isinstance(one, tuple) else (one, one) for one in uids)
    return [{"first": first, "last": last} for first, last in pairs]
