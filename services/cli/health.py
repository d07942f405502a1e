"""`hopline health`: each part of the stack, and below it each member of those that may have several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from services.common.printable import printable


def health_lines(body: Mapping[str, Any]) -> Iterator[str]:
    """Of the body of GET /healthz."""
    members = body.get("members", {})
    width = max((len(member) for found in members.values() for member in found), default=0)
    does = {member: f", {what}" for member, what in body.get("does", {}).items()}
    for name, state in body.get("services", {}).items():
        yield printable(f"{name:<8} {state}")
        for member, its in members.get(name, {}).items():
            yield printable(f"  {member:<{width}}  {its}{does.get(member, '')}")
    for name, note in body.get("notes", {}).items():
        yield printable(f"{name:<8} {note}")
    if restored := body.get("restored"):
        yield printable(restored)
