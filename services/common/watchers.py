"""Records of the watchers of the topology: the router writes them, mgmt finds the gateways in them."""

from __future__ import annotations

import json

RECORD_KIND = "watcher"


def role_in(value: bytes) -> str:
    """gateway, queue or router, from a record's value. Raises ValueError or KeyError if it has none."""
    return str(json.loads(value)["role"])
