"""Messages in RabbitMQ's words: what is published by hand, and what was got."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import pika
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from services.common.errors import SyntaxFault
from services.mgmt.rabbitmq.amqp import Channel, Got
from services.mgmt.rabbitmq.forms import Short, Table
from services.mgmt.rabbitmq.plain import told

MOST_MESSAGES: Final = 10_000
_MOST_BYTES: Final = 64 << 20
"""Of messages that are got at once: then no more are."""
_PROPERTIES: Final = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id", "reply_to",
    "expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id",
)  # fmt: skip

_Text = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]


class PropertiesForm(BaseModel):
    """As AMQP 0-9-1 names them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    content_type: Short | None = None
    content_encoding: Short | None = None
    headers: Table | None = None
    delivery_mode: Annotated[int | None, Field(ge=1, le=2)] = None
    priority: Annotated[int | None, Field(ge=0, le=255)] = None
    correlation_id: Short | None = None
    reply_to: Short | None = None
    expiration: _Text | None = None
    message_id: Short | None = None
    timestamp: Annotated[int | None, Field(ge=0, lt=1 << 63)] = None
    type: Short | None = None
    user_id: Short | None = None
    app_id: Short | None = None
    cluster_id: Short | None = None

    def made(self) -> pika.BasicProperties:
        """As pika has them."""
        return pika.BasicProperties(**self.model_dump(exclude_none=True))


_Properties = Annotated[PropertiesForm, BeforeValidator(lambda value: {} if value in ([], None) else value)]


class PublishForm(BaseModel):
    """A message."""

    routing_key: Short
    payload: str
    payload_encoding: Literal["string", "base64"] = "string"
    properties: _Properties = Field(default_factory=PropertiesForm)

    def all_keys(self) -> Iterator[str]:
        """By all of which it goes: those of the headers CC and BCC too, which a gateway refuses where they are none."""
        yield self.routing_key
        headers = self.properties.headers or {}
        for more in (headers.get("CC"), headers.get("BCC")):
            yield from (key for key in more if isinstance(key, str)) if isinstance(more, list) else ()

    def body(self) -> bytes:
        """Raises SyntaxFault where it is not encoded so."""
        if self.payload_encoding == "string":
            return self.payload.encode()
        try:
            return base64.b64decode(self.payload, validate=True)
        except (binascii.Error, ValueError) as error:
            raise SyntaxFault(f"payload: {error}") from None


class GetForm(BaseModel):
    """How many, and what becomes of them."""

    count: int = Field(ge=1, le=MOST_MESSAGES)
    ackmode: Literal["ack_requeue_true", "ack_requeue_false", "reject_requeue_true", "reject_requeue_false"]
    encoding: Literal["auto", "base64"]
    truncate: Annotated[int | None, Field(ge=0)] = None


async def get(channel: Channel, queue: str, form: GetForm) -> list[dict[str, Any]]:
    """First all are got, then they are given back: otherwise the first would be got again and again."""
    settled = form.ackmode == "ack_requeue_false"
    found: list[Got] = []
    size = 0
    while len(found) < form.count and size < _MOST_BYTES:
        if (got := await channel.get(queue, settled=settled)) is None:
            break
        found.append(got)
        size += len(got.body)
    for each in [] if settled else found:
        channel.reject(each.method.delivery_tag, requeue=form.ackmode != "reject_requeue_false")
    if found and not settled:
        await channel.settled()
    return [_told(each, form) for each in found]


def _told(got: Got, form: GetForm) -> dict[str, Any]:
    method, shown = got.method, got.body[: form.truncate]
    payload, encoding = _encoded(shown, form.encoding)
    return {
        "payload_bytes": len(got.body),
        "redelivered": method.redelivered,
        "exchange": method.exchange,
        "routing_key": method.routing_key,
        "message_count": method.message_count,
        "properties": _properties(got.properties),
        "payload": payload,
        "payload_encoding": encoding,
    }


def _encoded(body: bytes, encoding: str) -> tuple[str, str]:
    """`auto` is text where it is UTF-8."""
    if encoding == "auto":
        try:
            return body.decode(), "string"
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode(), "base64"


def _properties(properties: Any) -> Mapping[str, Any]:  # noqa: ANN401 - pika's
    found = {name: getattr(properties, name) for name in _PROPERTIES}
    return {name: _plain(value) for name, value in found.items() if value is not None}


def _plain(value: object) -> Any:  # noqa: ANN401 - whatever JSON has
    return int(value.timestamp()) if isinstance(value, datetime) else told(value)
