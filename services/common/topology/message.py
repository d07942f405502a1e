"""What of a message decides where it goes, besides its keys: read only where an exchange or a selector looks at it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from services.common.errors import BrokerError
from services.common.message import format_named
from services.common.message.facts import Attributes, Facts, facts_of
from services.common.selectors.message import MessageView
from services.common.selectors.values import Value, plain


class Message(Protocol):
    """One message."""

    def headers(self) -> Mapping[str, Any]:
        """The application's; raises BrokerError where they cannot be read."""

    def look_up(self, name: str) -> Value:
        """What a selector calls so; see services.common.selectors.values.LookUp."""


class Published:
    """One as it was published; or a question about one of which nothing is known but its keys: its format is ""."""

    __slots__ = ("_facts", "_headers", "_properties", "_view")

    def __init__(self, facts: Facts, properties: bytes) -> None:
        self._facts = facts
        self._properties = properties
        self._headers: Mapping[str, Any] | None = None
        self._view: MessageView | None = None

    def headers(self) -> Mapping[str, Any]:
        """See Message; read once."""
        if self._headers is None:
            named = self._facts.format
            self._headers = format_named(named).headers(self._properties) if named else {}
        return self._headers

    def look_up(self, name: str) -> Value:
        """See Message. When it expires is known once a queue has it: until then, that it does not."""
        if not self._facts.format:
            return None
        if self._view is None:
            expires = None if self._facts.ttl_ms is not None else 0
            self._view = MessageView(self._facts, self._properties, expires=expires)
        return self._view.look_up(name)


class OfHeaders:
    """One of which only headers are known; what else there is to look up goes by its name among them."""

    __slots__ = ("_headers",)

    def __init__(self, headers: Mapping[str, Any]) -> None:
        self._headers = headers

    def headers(self) -> Mapping[str, Any]:
        """See Message."""
        return self._headers

    def look_up(self, name: str) -> Value:
        """See Message."""
        return plain(self._headers.get(name))


_NOTHING: Final = Attributes()


def asked_about(virtual_host: str, exchange: str, key: str, named: str, properties: bytes) -> Published:
    """One of which others have said its properties: they say what else there is to know of it."""
    attributes = _NOTHING
    if named:
        with suppress(BrokerError):  # who publishes such a message hears of it where it is taken in
            attributes = format_named(named).attributes(properties)
    return Published(facts_of(virtual_host, exchange, key, named, attributes), properties)
