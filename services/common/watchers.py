"""Records of those who route by the topology: the router writes them, mgmt reads in them which gateways there are."""

from __future__ import annotations

import json

RECORD_KIND = "watcher"


def role_in(value: bytes) -> str:
    """gateway, queue or router, of a record's value. Raises ValueError or KeyError when it is none."""
    return str(json.loads(value)["role"])
