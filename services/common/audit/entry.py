"""A line of the audit log."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Final

SIGNED_IN: Final = "signed in"
REFUSED: Final = "refused"
DENIED: Final = "denied"
CHANGED: Final = "changed"
MISSED: Final = "missed"

_LONGEST = 512  # characters of a text that a client chose
_SAID: Final = ("user", "connection", "reason", "by", "name")


@dataclass(frozen=True, slots=True)
class Entry:
    """What happened; empty fields are left out. Nothing in it is secret."""

    event: str
    user: str = ""  # as it signed in, or tried to
    provider: str = ""
    mechanism: str = ""
    peer: str = ""  # address and port
    through: str = ""  # the port by which it came, "http" or "$management"
    connection: str = ""
    reason: str = ""
    by: str = ""  # the user that asked for a change, and from where
    what: str = ""  # that was changed, or denied: the kind of a record, or of an object …
    name: str = ""  # … and its name
    change: str = ""  # put, deleted
    fields: tuple[str, ...] = ()  # of the record, that are not as they were
    count: int = 1  # times; those that are alike and come at once are one line

    def __post_init__(self) -> None:
        """A refused client may say names of any length: they are cut, since thousands of them wait, and are counted."""
        for field in _SAID:
            said: str = getattr(self, field)
            if len(said) > _LONGEST:
                object.__setattr__(self, field, said[:_LONGEST])

    def line(self, time: str, service: str, instance: str) -> bytes:
        """As JSON."""
        said = {name: value for name in _NAMES if (value := getattr(self, name)) and (name != "count" or value != 1)}
        whole = {"time": time, "service": service, "instance": instance, **said}
        return json.dumps(whole, ensure_ascii=True).encode() + b"\n"


_NAMES = tuple(field.name for field in fields(Entry))
