"""How requests and replies are written in each message format: plug-ins of group `management_forms`, by its name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any, Final, Protocol

from services.common import plugins
from services.common.errors import SyntaxFault

GROUP: Final = "management_forms"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Requester:
    """Where a reply goes (nowhere: ""), and by what its requester knows it, of whatever type its protocol has."""

    reply_to: str = ""
    correlation: Any = None
    json: bool = False  # it asks in JSON, and is answered so


class Form(Protocol):
    """Of one message format. Pure."""

    def requester(self, properties: bytes) -> Requester:
        """Raises SyntaxFault, for an address that no reply can be sent to."""

    def said(self, properties: bytes, body: bytes) -> tuple[Mapping[str, Any], Any]:
        """Headers, or application properties, and the body: plain values. Raises SyntaxFault."""

    def reply(self, to: Requester, headers: Mapping[str, Any], body: Any) -> tuple[bytes, bytes]:  # noqa: ANN401 - any
        """Properties and body of a reply; `body` None: it has none."""


def form_of(message_format: str) -> Form | None:
    """None where no reply is sent in it."""
    if message_format not in plugins.names(GROUP):
        return None
    found: Form = plugins.load(GROUP, message_format)
    return found


def is_json(content_type: str | None) -> bool:
    """Whether a body of that type is."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    return kind == JSON or kind.endswith("+json")


def load_json(body: bytes) -> Any:  # noqa: ANN401 - whatever it says
    """None of an empty body; raises SyntaxFault for what is none."""
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError) as error:
        raise SyntaxFault(f"the body is no JSON: {error}") from None


def plain(value: Any) -> Any:  # noqa: ANN401 - any value
    """As JSON has it, or what is next to it: bytes are text, moments milliseconds, as in all of the model."""
    match value:
        case dict():
            return {str(name): plain(each) for name, each in value.items()}
        case list():
            return [plain(each) for each in value]
        case bytes():
            return value.decode(errors="replace")
        case datetime():
            return int(value.timestamp() * 1000)
        case None | str() | int() | float() if not isinstance(value, float) or isfinite(value):
            return value
    return str(value)


def dump_json(value: object) -> bytes:
    """A body."""
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")
