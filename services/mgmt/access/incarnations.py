"""Of which incarnation of each virtual host that is what is filed by its name. Pure.

A record of its own says it for each name, so that what is filed keeps the shape that older gateways read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from services.common.access.records import FILED_FOR, VIRTUAL_HOST, incarnation_in, is_former
from services.rpc.store_pb2 import Record


class Noted(NamedTuple):
    """`there` are all virtual hosts, by name; what is filed by a name in `outdated` is another one's."""

    there: frozenset[str]
    outdated: frozenset[str]
    puts: tuple[Record, ...]  # of FILED_FOR, for when that is dropped
    deletes: tuple[Record, ...]


def noted(records: Iterable[Record]) -> Noted:
    """By records of virtual hosts, and of FILED_FOR. Nothing is outdated while there is no virtual host at all."""
    ids: dict[str, dict[str, int]] = {VIRTUAL_HOST: {}, FILED_FOR: {}}
    for record in records:
        if record.kind in ids:
            ids[record.kind][record.key] = incarnation_in(record.value)
    hosts, filed = ids[VIRTUAL_HOST], ids[FILED_FOR]
    others = {name for name, id_ in hosts.items() if is_former(filed.get(name), id_)}
    gone = filed.keys() - hosts.keys() if hosts else set[str]()
    news = others | (hosts.keys() - filed.keys())
    return Noted(
        frozenset(hosts),
        frozenset(others | gone),
        tuple(Record(kind=FILED_FOR, key=name, value=json.dumps({"id": hosts[name]}).encode()) for name in news),
        tuple(Record(kind=FILED_FOR, key=name) for name in gone),
    )
