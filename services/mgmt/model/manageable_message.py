"""A message as Broker-J's `publishMessage` takes it: its attributes, read, as AMQP 0-9-1 puts them. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from services.common.message import LONGEST_NAME, amqp_map
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.values import of_kind

_SHORT: Final = {
    "correlationId": "correlation_id",
    "appId": "app_id",
    "messageId": "message_id",
    "mimeType": "content_type",
    "encoding": "content_encoding",
    "replyTo": "reply_to",
}
"""What AMQP 0-9-1 calls those that are texts."""
_OTHERS: Final = (
    "address", "persistent", "expiration", "priority", "notValidBefore", "headers", "content",
    "contentTransferEncoding",
)  # fmt: skip
_NOT_BEFORE: Final = "x-qpid-not-valid-before"
_MAP, _LIST, _TEXT, _BYTES = "amqp/map", "amqp/list", "text/plain", "application/octet-stream"
_TEXTUAL: Final = ("application/json", "application/xml")
_CHARSET: Final = re.compile(r";\s*charset\s*=")
_NUMBER: Final = re.compile(r"-?\d{1,18}")
_LATEST: Final = 253_402_300_799_999  # ms: the last of the year 9999
_HIGHEST: Final = 255


@dataclass(frozen=True, slots=True)
class ManageableMessage:
    """`properties` without what depends on when it is sent, and by whom; `expires` is Unix ms, None: never."""

    address: str
    properties: Mapping[str, Any]
    body: bytes
    expires: int | None

    @property
    def headers(self) -> Mapping[str, Any]:
        """Empty where it has none."""
        headers: Mapping[str, Any] = self.properties.get("headers", {})
        return headers

    def sent(self, user: str, now_ms: int) -> dict[str, Any]:
        """All properties of what a user sends at this moment."""
        sent: dict[str, Any] = {**self.properties, "timestamp": now_ms // 1000}
        if len(user.encode()) <= LONGEST_NAME:
            sent["user_id"] = user
        if self.expires is not None:
            sent["expiration"] = str(max(self.expires - now_ms, 0))
        return sent


def read(said: Mapping[str, Any]) -> ManageableMessage:
    """Raises IllegalConfiguration that names the attribute, and SyntaxFault for a map that AMQP cannot hold."""
    there = (*_SHORT, *_OTHERS)
    if unknown := [name for name in said if name not in there]:
        raise IllegalConfiguration(
            f"attribute '{min(unknown)}' of the message: there is none; there are {', '.join(there)}"
        )
    said = {name: value for name, value in said.items() if value is not None}
    if not (address := _read(said, "address", str, "")):
        raise IllegalConfiguration("attribute 'address' of the message: it is mandatory")
    properties: dict[str, Any] = {theirs: _short(said, name) for name, theirs in _SHORT.items() if name in said}
    body, type_ = _content(said)
    properties |= {"content_type": type_} if type_ else {}
    properties["delivery_mode"] = 2 if _read(said, "persistent", bool, False) else 1
    properties |= {"priority": priority} if (priority := _priority(said)) else {}
    properties |= {"headers": headers} if (headers := _headers(said)) else {}
    return ManageableMessage(address, properties, body, _moment(said, "expiration"))


def _read(said: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:  # noqa: ANN401 - each its own
    return of_kind(kind, said[name], _what(name)) if name in said else default


def _what(name: str) -> str:
    return f"attribute '{name}' of the message"


def _short(said: Mapping[str, Any], name: str) -> str:
    text: str = _read(said, name, str, "")
    if len(text.encode()) > LONGEST_NAME:
        raise IllegalConfiguration(f"{_what(name)}: at most {LONGEST_NAME} bytes")
    return text


def _priority(said: Mapping[str, Any]) -> int:
    priority: int = _read(said, "priority", int, 0)
    if not 0 <= priority <= _HIGHEST:
        raise IllegalConfiguration(f"{_what('priority')}: 0 to {_HIGHEST}, not {priority}")
    return priority


def _headers(said: Mapping[str, Any]) -> dict[str, Any]:
    headers: dict[str, Any] = _read(said, "headers", dict, {})
    not_before = _moment(said, "notValidBefore")
    return headers if not_before is None else {**headers, _NOT_BEFORE: not_before}


# ------------------------------------------------------------------ moments


def _moment(said: Mapping[str, Any], name: str) -> int | None:
    """Unix ms: of a number, or as ISO 8601 writes it; of no zone, UTC. 0 is none, as in Broker-J."""
    if name not in said:
        return None
    value = said[name]
    found = int(value) if _is_number(value) else _date(value, name)
    if not 0 <= found <= _LATEST:
        raise IllegalConfiguration(f"{_what(name)}: no moment of the years 1970 to 9999 is {value!r}")
    return found or None


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return bool(_NUMBER.fullmatch(value))
    return isinstance(value, int) and not isinstance(value, bool)


def _date(value: object, name: str) -> int:
    try:
        at = datetime.fromisoformat(value)  # type: ignore[arg-type]  # TypeError for what is no text
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, TypeError, OverflowError):
        raise IllegalConfiguration(
            f"{_what(name)}: Cannot convert string {value!r} to a Date. "
            "It is neither a ISO-8601 date or date time nor a string containing a numeric value."
        ) from None


# ------------------------------------------------------------------ content


def _content(said: Mapping[str, Any]) -> tuple[bytes, str]:
    """As bytes, and of which type they are, as far as the content says that."""
    content = said.get("content")
    if content is None:
        return b"", ""
    if isinstance(content, dict | list):
        if "mimeType" in said or "encoding" in said:
            raise IllegalConfiguration(
                "If the message content is provided as map or list, the mime type and encoding must be left unset"
            )
        return amqp_map.dump(content), _MAP if isinstance(content, dict) else _LIST
    if isinstance(content, str):
        return _of_text(content, said)
    raise IllegalConfiguration("The message content (if present) can only be a string, map or list")


def _of_text(content: str, said: Mapping[str, Any]) -> tuple[bytes, str]:
    transfer: str = _read(said, "contentTransferEncoding", str, "")
    mime: str = _short(said, "mimeType")
    if transfer.lower() == "base64":
        return _decoded(content), mime or _BYTES
    if transfer.strip().lower() not in {"", "identity"}:
        raise IllegalConfiguration(
            f"contentTransferEncoding value '{transfer}' is invalid.  The only valid values are base64 and identity"
        )
    _check_textual(mime)
    return content.encode(), mime or _TEXT


def _decoded(content: str) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise IllegalConfiguration(f"{_what('content')}: {error}") from None


def _check_textual(mime: str) -> None:
    plain = mime.strip().lower()
    wrong = f"{mime} is invalid as a MIME type for this message. "
    if plain and not plain.startswith("text/") and plain not in _TEXTUAL:
        raise IllegalConfiguration(
            f"{wrong}Only MIME types of the text type can be used if a string is supplied as the content"
        )
    if _CHARSET.search(plain):
        raise IllegalConfiguration(
            f"{wrong}If a string is supplied as the content, the MIME type must not include a charset parameter"
        )
