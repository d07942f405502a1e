"""Changes by management in a virtual host, for the audit log: with the user who asked for each, and its address.

What clients declare, bind and delete for themselves is none of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from services.common.audit.acting import acting
from services.common.audit.audit import Audit
from services.common.audit.entry import CHANGED, Entry

_CHANGES: Final[Mapping[str, tuple[str, str]]] = {
    "declare_queue": ("queue", "put"),
    "delete_queue": ("queue", "deleted"),
    "change_queue": ("queue", "changed"),
    "declare_exchange": ("exchange", "put"),
    "delete_exchange": ("exchange", "deleted"),
    "bind": ("binding", "put"),
    "unbind": ("binding", "deleted"),
    "set_policy": ("policy", "set"),
    "clear_policy": ("policy", "deleted"),
}
"""By the field of a change of the topology. Virtual hosts are told by the store, as other records are."""


def record_change(audit: Audit, virtual_host: str, field: str, change: Any, *, created: bool) -> None:  # noqa: ANN401 - that field's
    """One that the router has made; what was there already is no change."""
    what, done = _CHANGES.get(field, ("", ""))
    if what and (created or done != "put"):
        names = [change.source, change.destination, change.routing_key] if what == "binding" else [change.name]
        record(audit, what, done, virtual_host, *names)


def record(audit: Audit, what: str, change: str, *names: str) -> None:
    """`names` are those of the virtual host, and of the thing in it."""
    audit.tell(Entry(CHANGED, by=acting(), what=what, name=json.dumps(names, ensure_ascii=False), change=change))
