"""What rules may ask of a queue that is there: the same that gateways tell them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.common.access import questions
from services.mgmt.tree.mirror import Mirror


def properties_of(mirror: Mirror, virtual_host: str, name: str) -> questions.Properties:
    """Nothing where there is none of that name."""
    there = mirror.grouped("queue", "virtual_host").get(virtual_host, ())
    return next((properties(each.value) for each in there if each.value["name"] == name), ())


def properties(record: Mapping[str, Any]) -> questions.Properties:
    """Of its definition, as the router keeps it."""
    exclusive = bool(record["exclusive_to"] or record.get("owner"))
    return questions.queue(durable=record["durable"], exclusive=exclusive, auto_delete=record["auto_delete"])
