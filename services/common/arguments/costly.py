"""Selectors in what is declared: to check them compiles them, which takes long. They are found without that."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from services.common.arguments import filters
from services.common.errors import SyntaxFault
from services.common.message import arguments
from services.common.topology import records
from services.rpc.router_pb2 import TopologyFrame


def _said(value: object) -> list[str]:
    return [value] if isinstance(value, str) else []


_FOUND_BY: Final[Mapping[str, Callable[[Any], list[str]]]] = {
    filters.SELECTOR: _said,
    "defaultFilters": filters.texts,
    "qpid.default_filters": filters.texts,
}
_WRITTEN: Final = tuple(json.dumps(name).encode() for name in _FOUND_BY)


def selectors_in(written: bytes) -> list[str]:
    """Of a queue's arguments, or a binding's; none of what cannot be read."""
    if not any(name in written for name in _WRITTEN):
        return []
    with suppress(SyntaxFault):
        table = arguments.load(written)
        return [text for name, found in _FOUND_BY.items() if name in table for text in found(table[name])]
    return []


def selectors_of(frame: TopologyFrame) -> list[str]:
    """Of the bindings that a frame of the topology tells of. Those of queues are wanted where consumers come."""
    found = list[str]()
    for record in frame.records:
        if record.kind == records.BINDING and not record.deleted and filters.SELECTOR.encode() in record.value:
            with suppress(ValueError):
                found += selectors_in(records.read_binding(record.value)[2].arguments)
    return found
