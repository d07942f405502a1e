"""The body of a message as Broker-J's getMessageContent gives it: as it is, or as JSON. Pure."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from services.common.errors import BrokerError
from services.common.message import amqp_map, format_named
from services.common.message.facts import Facts
from services.common.selectors.message import MessageView
from services.mgmt.model.answer import Answer
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.strict_json import strict
from services.mgmt.rabbitmq.plain import told

_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+(; ?[\w-]+=[\w.-]+)*", re.ASCII)
_ENCODING: Final = re.compile(r"[\w-]+", re.ASCII)
_BYTES: Final = "application/octet-stream"
_GZIP: Final = 31  # as zlib calls it
_LARGEST: Final = 16 << 20  # bytes that a compressed body may become, and of JSON
_SAFE: Final = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'"}
"""A message is whatever its publisher wrote: no browser may take it for a page of this broker."""


class Content:
    """Of one message."""

    def __init__(self, uid: int, facts: Facts, properties: bytes, body: bytes) -> None:
        view = MessageView(facts, properties)
        self._uid = uid
        self._body = format_named(facts.format).content(body)
        self._type = view.text("content-type") or ""
        self._encoding = view.text("content-encoding") or ""

    def answer(self, limit: int, *, as_json: bool, decompressed: bool) -> Answer:
        """`limit`: so many bytes of it, or of each text in its JSON; below 0 all. `decompressed`: before it is cut.

        Raises IllegalConfiguration where there is no such JSON.
        """
        if as_json:
            return Answer(_cut(self._json(), limit))
        body, encoding = self._body, self._encoding
        if decompressed and encoding == "gzip":
            body, encoding = _decompressed(body), ""
        cut = body if limit < 0 else body[:limit]
        headers = {"Content-Type": self._type if _TYPE.fullmatch(self._type) else _BYTES, **_SAFE}
        headers["Content-Disposition"] = f'attachment; filename="message-{self._uid}"'
        # Half of what is compressed cannot be decompressed by whoever reads it.
        if _ENCODING.fullmatch(encoding) and len(cut) == len(body):
            headers["Content-Encoding"] = encoding
        value = {"content": base64.b64encode(cut).decode(), "contentTransferEncoding": "base64"}
        return Answer({**value, "mimeType": self._type, "encoding": encoding}, headers, cut)

    def _json(self) -> Any:  # noqa: ANN401 - JSON
        body = _decompressed(self._body) if self._encoding == "gzip" else self._body
        kind = self._type.partition(";")[0].strip().lower()
        read = _JSON.get(kind) or (_text if kind.startswith("text/") else _none)
        try:
            return told((read if len(body) <= _LARGEST else _none)(body))
        except (ValueError, RecursionError, BrokerError):
            raise IllegalConfiguration(f"message {self._uid} of type {self._type!r} is no JSON") from None


def _text(body: bytes) -> str:
    return body.decode()


def _none(_body: bytes) -> None:
    raise ValueError


_JSON: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "amqp/map": amqp_map.load_map,
    "jms/map-message": amqp_map.load_map,
    "amqp/list": amqp_map.load_list,
    "application/json": strict,
}


def _cut(value: Any, limit: int) -> Any:  # noqa: ANN401 - JSON
    if limit < 0:
        return value
    if isinstance(value, dict):
        return {name: _cut(each, limit) for name, each in value.items()}
    if isinstance(value, list):
        return [_cut(each, limit) for each in value]
    return f"{value[:limit]}..." if isinstance(value, str) and len(value) > limit else value


def _decompressed(body: bytes) -> bytes:
    """As it is where it is none, or too much of it."""
    try:
        unpacked = zlib.decompressobj(_GZIP).decompress(body, _LARGEST + 1)
    except zlib.error:
        return body
    return unpacked if len(unpacked) <= _LARGEST else body
