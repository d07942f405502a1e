"""By which keys a message goes: access is asked for all of them by the address of the caller, which no gateway sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def all_keys(routing_key: str, headers: Mapping[str, Any]) -> Iterator[str]:
    """Those of the headers CC and BCC too, which a gateway refuses where they are none."""
    yield routing_key
    for more in (headers.get("CC"), headers.get("BCC")):
        yield from (key for key in more if isinstance(key, str)) if isinstance(more, list) else ()
