"""A message between protocols: opaque properties and body, and the few facts that a broker acts on.

What nobody needs decoded stays bytes. A message format (plug-in group `message_formats`) reads properties written by
its protocol; every format can also tell and replace headers, so that routing and dead-lettering work on any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from services.common import plugins
from services.common.message.facts import Attributes
from services.common.message.identities import Named
from services.common.telemetry.context import SpanContext

LONGEST_NAME = 255
"""Bytes of an exchange's or queue's name, and of a routing key: a short string (AMQP 0-9-1, 4.2.5.3)."""


class MessageFormat(Protocol):
    """Reads and rewrites the properties that one protocol family writes. Pure; raises SyntaxFault on bad bytes."""

    name: str

    def attributes(self, properties: bytes) -> Attributes:
        """The attributes; equal ones are the same object, so that messages alike are found by identity."""

    def headers(self, properties: bytes) -> Mapping[str, Any]:
        """The application headers as Python values (empty when there are none)."""

    def header(self, properties: bytes, name: str) -> Any:  # noqa: ANN401 - as its type says
        """One of them, or None: the others are not read, where that can be."""

    def with_headers(self, properties: bytes, headers: Mapping[str, Any], *, drop_expiration: bool = False) -> bytes:
        """The same properties with `headers` in place of those they had."""

    def with_annotations(self, properties: bytes, said: bytes) -> bytes:
        """The same properties with annotations added to them, as a receiver says them (`amqp_1_0/added.py`).

        Raises ResourceError where it is too much, or what it has already cannot be read, or not at once.
        """

    def with_reply_to(self, properties: bytes, reply_to: str) -> bytes:
        """The same properties with another reply-to address."""

    def more_keys(self, properties: bytes) -> tuple[tuple[str, ...], bytes]:
        """The keys by which a message is routed besides its routing key, and the properties as others may see them.

        Raises PreconditionFailed for what cannot be keys.
        """

    def identifying(self, properties: bytes) -> bytes:
        """What of valid properties has to be kept for `identities`: all, or less of long ones, or b"" for nothing."""

    def identities(self, properties: bytes) -> Sequence[tuple[str, str]]:
        """What a message can be looked up by, as (kind, id): "message_id", "correlation_id", "trace_id"."""

    def identifying_of(self, column: Sequence[bytes]) -> Sequence[bytes]:
        """`identifying` of each of some properties; nothing where there is nothing of any."""

    def identities_of(self, column: Sequence[bytes]) -> Sequence[Named]:
        """`identities` of some properties, at least one; what cannot be read has none."""

    def trace_context(self, properties: bytes) -> SpanContext | None:
        """The creation context that the application gave the message, wherever its protocol carries one.

        None when there is none or it is not valid, whatever the bytes are: this never raises.
        """

    def content(self, body: bytes) -> bytes:
        """A body as an application of another protocol would have it: without what this one says around it."""

    def timestamp_ms(self, properties: bytes) -> int | None:
        """When its publisher says that it was made: Unix ms, or None."""

    def text(self, properties: bytes, name: str) -> str | None:
        """A property by the 0-9-1 name of it (message-id, correlation-id, reply-to, type, …), or None.

        What is not UTF-8 in it is replaced: for who reads it, or compares it with text.
        """

    def octets(self, properties: bytes, name: str) -> bytes | None:
        """The same as it came, for who passes it on: clients have ids of any bytes. None where it is no text."""


def format_named(name: str) -> MessageFormat:
    """The installed message format `name`; raises UnknownPlugin."""
    found: MessageFormat = plugins.load("message_formats", name)
    return found
