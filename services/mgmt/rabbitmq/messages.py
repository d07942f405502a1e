"""Messages in RabbitMQ's words: what is published by hand, and what was got."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from services.common.clock import monotonic
from services.common.config import Settings
from services.common.errors import SyntaxFault
from services.mgmt.by_hand.client import Channel, Got, Login, channel
from services.mgmt.by_hand.keys import all_keys
from services.mgmt.by_hand.properties import Properties
from services.mgmt.rabbitmq.forms import Short, Table
from services.mgmt.rabbitmq.plain import told, written

MOST_MESSAGES: Final = 10_000
_MOST_BYTES: Final = 16 << 20
_LONGEST: Final = 15.0  # seconds
"""Of messages that are got at once: then no more are. mgmt does nothing else while it writes them as JSON."""
_PROPERTIES: Final = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id", "reply_to",
    "expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id", "unreadable_headers",
)  # fmt: skip

_Text = Annotated[Short, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]


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

    def made(self) -> Properties:
        """As pika has them. Raises SyntaxFault for headers that no table can hold."""
        made = Properties(**self.model_dump(exclude_none=True))
        made.encode()
        return made


_Properties = Annotated[PropertiesForm, BeforeValidator(lambda value: {} if value in ([], None) else value)]


class PublishForm(BaseModel):
    """A message."""

    routing_key: Short
    payload: str
    payload_encoding: Literal["string", "base64"] = "string"
    properties: _Properties = Field(default_factory=PropertiesForm)

    def all_keys(self) -> Iterator[str]:
        """By all of which it goes."""
        return all_keys(self.routing_key, self.properties.headers or {})

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

    count: int = Field(ge=0, le=MOST_MESSAGES)
    ackmode: Literal["ack_requeue_true", "ack_requeue_false", "reject_requeue_true", "reject_requeue_false"]
    encoding: Literal["auto", "base64"]
    truncate: Annotated[int | None, Field(ge=0)] = None


async def publish(settings: Settings, login: Login, virtual_host: str, exchange: str, form: PublishForm) -> bool:
    """Whether any queue has it. Raises what the gateway refuses it with, and SyntaxFault before it is asked."""
    body, properties = form.body(), form.properties.made()
    async with channel(settings, login, virtual_host) as opened:
        return await opened.publish(exchange, form.routing_key, properties, body)


async def get(
    settings: Settings,
    login: Login,
    virtual_host: str,
    queue: str,
    form: GetForm,
    left: Callable[[], Awaitable[bool]],
) -> AsyncGenerator[bytes, None]:
    """Each as JSON. First all are got and written down, then they are settled: what fails before has lost none.

    Nor has a caller that `left` meanwhile, or does not read on: the messages are requeued.
    """
    last, count, size, until = 0, 0, 0, monotonic() + _LONGEST
    async with channel(settings, login, virtual_host) as opened:
        while count < form.count and size < _MOST_BYTES and monotonic() < until:
            if (got := await opened.get(queue)) is None:
                break
            told = written(_told(got, form))
            last, count, size = got.method.delivery_tag, count + 1, size + len(told)
            yield told
        if count and not await left():
            await _settle(opened, last, form.ackmode)


async def _settle(opened: Channel, last: int, ackmode: str) -> None:
    if ackmode == "ack_requeue_false":
        await opened.accept(last)
    else:
        await opened.reject(last, requeue=ackmode != "reject_requeue_false")


def _told(got: Got, form: GetForm) -> dict[str, Any]:
    method, shown = got.method, got.body[: form.truncate]
    payload, encoding = _encoded(shown, form.encoding)
    return {
        "payload_bytes": len(got.body),
        "redelivered": method.redelivered,
        "exchange": told(method.exchange),
        "routing_key": told(method.routing_key),
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
    return {name: told(value) for name, value in found.items() if value is not None}
