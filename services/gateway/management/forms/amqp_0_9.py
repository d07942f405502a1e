"""AMQP 0-8, 0-9 and 0-9-1: headers, and a body that its content type describes, as Qpid's clients do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import uuid4

from services.common.message import amqp_map
from services.common.message.amqp_0_9 import FORMAT, compose
from services.gateway.management.forms import JSON, Requester, dump_json, is_json, load_json, plain

_MAP: Final = "amqp/map"
_LIST: Final = "amqp/list"
_READERS: Final[Mapping[str, Callable[[bytes], Any]]] = {_MAP: amqp_map.load_map, _LIST: amqp_map.load_list}


class Amqp09Form:
    """See services.gateway.management.forms.Form."""

    def requester(self, properties: bytes) -> Requester:
        """As Form says."""
        correlation = FORMAT.octets(properties, "correlation-id")
        if correlation is None:
            correlation = FORMAT.octets(properties, "message-id")
        reply_to, content_type = FORMAT.text(properties, "reply-to"), FORMAT.text(properties, "content-type")
        return Requester(reply_to or "", correlation, is_json(content_type))

    def said(self, properties: bytes, body: bytes) -> tuple[Mapping[str, Any], Any]:
        """As Form says; a body of another content type is text."""
        content_type = FORMAT.text(properties, "content-type")
        headers = plain(dict(FORMAT.headers(properties)))
        if is_json(content_type):
            return headers, load_json(body)
        if read := _READERS.get(content_type or ""):
            return headers, plain(read(body))
        return headers, body.decode(errors="replace") if body else None

    def reply(self, to: Requester, headers: Mapping[str, Any], body: Any) -> tuple[bytes, bytes]:  # noqa: ANN401 - any
        """As Form says: amqp/map or amqp/list, which have no place for what is neither; that is JSON."""
        content_type, told = _body(body, json=to.json)
        texts = {"message-id": str(uuid4()), "content-type": content_type, "correlation-id": to.correlation}
        said = {name: text for name, text in texts.items() if text is not None}
        return compose(said, headers, persistent=False, priority=0), told


def _body(body: Any, *, json: bool) -> tuple[str | None, bytes]:  # noqa: ANN401 - any
    if body is None:
        return None, b""
    if json or not isinstance(body, dict | list):
        return JSON, dump_json(body)
    return (_MAP if isinstance(body, dict) else _LIST), amqp_map.dump(body)


FORM = Amqp09Form()
