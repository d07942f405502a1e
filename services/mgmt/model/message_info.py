"""A message of a queue, as Broker-J's MessageInfo tells it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from services.common.errors import BrokerError
from services.common.message import columns, format_named
from services.common.message.facts import Facts
from services.common.selectors.message import MessageView
from services.mgmt.rabbitmq.plain import told
from services.rpc import queue_pb2 as pb

_STATES: Final[Mapping[int, str]] = {
    pb.Shown.AVAILABLE: "Available",
    pb.Shown.ACQUIRED: "Acquired",
    pb.Shown.HELD: "Held",
}
_TEXTS: Final = {
    "messageId": "message-id",
    "applicationId": "app-id",
    "correlationId": "correlation-id",
    "encoding": "content-encoding",
    "mimeType": "content-type",
    "replyTo": "reply-to",
    "type": "type",
    "userId": "user-id",
    "groupId": "group-id",
}
"""What AMQP 0-9-1 calls those that are texts."""


def infos(reply: pb.QueueReply, *, headers: bool) -> Iterator[dict[str, Any]]:
    """Of each message of a portion; what is not known of one is left out."""
    message = reply.message
    rows = zip(message.uids, columns.facts_in(message), columns.properties_in(message), reply.shown, strict=True)
    return (_info(*row, headers=headers) for row in rows)


def _info(uid: int, facts: Facts, properties: bytes, shown: pb.Shown, *, headers: bool) -> dict[str, Any]:
    view, acquired = MessageView(facts, properties), shown.state == pb.Shown.ACQUIRED
    found: dict[str, Any] = {
        "id": uid,
        "size": shown.size,
        "headerSize": len(properties),
        "messageType": facts.format,
        "deliveryCount": shown.attempts + acquired,
        "state": _STATES[shown.state],
        "arrivalTime": shown.time_ms or None,
        "persistent": facts.persistent,
        "expirationTime": shown.expires or None,
        "priority": facts.priority,
        "timestamp": view.timestamp(),
        "notValidBefore": facts.not_before,
        "initialRoutingAddress": facts.routing_key,
        "to": facts.exchange,
        **{name: view.text(theirs) for name, theirs in _TEXTS.items()},
    }
    found |= {"headers": _headers(facts, properties)} if headers else {}
    return {name: value for name, value in found.items() if value is not None}


def _headers(facts: Facts, properties: bytes) -> Any:  # noqa: ANN401 - JSON
    """None where they cannot be read."""
    try:
        return told(format_named(facts.format).headers(properties))
    except BrokerError:
        return None
