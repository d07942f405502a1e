"""A message as selectors see it: what JMS has names for, and the application's headers (JMS 3.8.1.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

from services.common.errors import BrokerError
from services.common.message import MessageFormat, format_named
from services.common.message.facts import Facts
from services.common.selectors.values import Value, plain


class MessageView:
    """Of one message; what is read of it is read once, whoever asks.

    `expires` is when it does (Unix ms, 0: never, None: that is not known yet), `redelivered` whether somebody may have
    had it.
    """

    def __init__(self, facts: Facts, properties: bytes, *, expires: int | None = 0, redelivered: bool = False) -> None:
        self.facts = facts
        self.expires = expires
        self.redelivered = redelivered
        self._properties = properties
        self._format: MessageFormat = format_named(facts.format)

    def look_up(self, name: str) -> Value:
        """See LookUp. What cannot be read is NULL: it is for consumers to find fault with."""
        read = _JMS.get(name)
        return plain(self._headers.get(name)) if read is None else read(self)

    def text(self, name: str) -> str | None:
        """A property, by its name in AMQP 0-9-1."""
        try:
            return self._format.text(self._properties, name)
        except BrokerError:
            return None

    def timestamp(self) -> int | None:
        """When its publisher says that it was made, Unix ms."""
        try:
            return self._format.timestamp_ms(self._properties)
        except BrokerError:
            return None

    @cached_property
    def _headers(self) -> Mapping[str, Any]:
        try:
            return self._format.headers(self._properties)
        except BrokerError:
            return {}


_JMS: Final[Mapping[str, Callable[[MessageView], Value]]] = {
    "JMSDestination": lambda _: None,  # as Broker-J has it: it is where the consumer is
    "JMSReplyTo": lambda message: message.text("reply-to"),
    "JMSType": lambda message: message.text("type"),
    "JMSDeliveryMode": lambda message: "PERSISTENT" if message.facts.persistent else "NON_PERSISTENT",
    "JMSPriority": lambda message: message.facts.priority,
    "JMSMessageID": lambda message: message.text("message-id"),
    "AMQMessageID": lambda message: message.text("message-id"),
    "JMSTimestamp": lambda message: message.timestamp(),
    "JMSCorrelationID": lambda message: message.text("correlation-id"),
    "JMSExpiration": lambda message: message.expires,
    "JMSRedelivered": lambda message: message.redelivered,
}
