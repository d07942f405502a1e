"""Changes of what operators set, for the audit log: all of them come to the store, whoever asks for them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from services.common.audit.audit import Audit
from services.common.audit.entry import CHANGED, Entry
from services.rpc.store_pb2 import PutRecordsRequest
from services.store.records import Records

_ACCESS = {"acl", "group", "permission", "topic_permission", "user", "virtual_host"}
_LIMITS = {"connection_limits", "user_limits", "virtual_host_limits"}
KINDS = frozenset(
    {
        "authentication_provider",
        "capture_rule",
        "log_rule",
        "logger",
        "logger_rule",
        "placement",
        "port",
        "tracing_rule",
        *_ACCESS,
        *_LIMITS,
    }
)
"""Of records that operators change; what services tell each other is none of it."""


class ChangeAudit:
    """Of one store."""

    def __init__(self, records: Records, audit: Audit) -> None:
        self._records = records
        self._audit = audit

    def changes(self, request: PutRecordsRequest) -> list[Entry]:
        """What it would change; asked before, and told with `tell` when it has."""
        return [*self._puts(request), *self._deletes(request)]

    def tell(self, changes: list[Entry]) -> None:
        """They are durable."""
        for entry in changes:
            self._audit.tell(entry)

    def _puts(self, request: PutRecordsRequest) -> Iterator[Entry]:
        for record in request.puts:
            if record.kind in KINDS and not record.transient:
                fields = _differences(self._records.value_of(record.kind, record.key), record.value)
                what = {"what": record.kind, "name": record.key, "fields": fields}
                yield Entry(CHANGED, by=request.actor, change="put", **what)  # type: ignore[arg-type]

    def _deletes(self, request: PutRecordsRequest) -> Iterator[Entry]:
        for record in request.deletes:
            if record.kind in KINDS and self._records.value_of(record.kind, record.key) is not None:
                yield Entry(CHANGED, by=request.actor, what=record.kind, name=record.key, change="deleted")


def _differences(former: bytes | None, value: bytes) -> tuple[str, ...]:
    """Names of the fields; what is in them is nobody's business."""
    before, after = _fields(former or b"{}"), _fields(value)
    return tuple(sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)))


def _fields(value: bytes) -> dict[str, object]:
    try:
        read = json.loads(value)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}
