"""Records of the watchers of the topology: the router writes them, who asks for the gateways reads them."""

from __future__ import annotations

import json
from typing import Final

RECORD_KIND: Final = "watcher"
SILENT_KIND: Final = "silent_watcher"
"""Gateways that have lost their place by silence, but whose stream did not break: one that stands still goes on, with
all its clients. They are named for a while, in the same form."""


def role_in(value: bytes) -> str:
    """gateway, queue or router, from a record's value. Raises ValueError or KeyError if it has none."""
    return str(json.loads(value)["role"])


def origin_in(value: bytes) -> int | None:
    """Of a gateway, from a record's value; None of others, who have no clients. Raises as `role_in`."""
    table = json.loads(value)
    origin = str(table["connections"]).partition(".")[0]
    return int(origin) if table["role"] == "gateway" and origin.isdigit() else None
