"""What was captured of messages: properties in words, and as much of the body as was kept."""

from __future__ import annotations

import base64
import json
from typing import Any

from services.common.capture.text import text_of
from services.common.errors import BrokerError
from services.common.message import arguments, format_named
from services.common.trace import Journey, Message, Payload
from services.mgmt.lookup.database import Database, Row
from services.mgmt.lookup.hours import hour_of

_COLUMNS = (
    "uid, epoch_us(time), stage, instance, queue, consumer, connection, client, rule, size, format, properties, body"
)
_FACTS = ("time_us", "stage", "instance", "queue", "consumer", "connection", "client", "rule", "size")
_PROPERTIES = (
    "content-type", "content-encoding", "delivery-mode", "priority", "correlation-id", "reply-to", "expiration",
    "message-id", "timestamp", "type", "user-id", "app-id", "cluster-id",
)  # fmt: skip


class Payloads:
    """Raises what `Database.select` does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, journeys: list[Journey]) -> list[Journey]:
        """With what was captured of their messages."""
        messages = [message for journey in journeys for message in journey.messages]
        found = self._found(messages)

        def shown(message: Message) -> Message:
            return message.model_copy(update={"payloads": found.get(message.uid, [])})

        return [journey.model_copy(update={"messages": list(map(shown, journey.messages))}) for journey in journeys]

    def _found(self, messages: list[Message]) -> dict[int, list[Payload]]:
        times = [step.time_us for message in messages for step in message.steps]
        near = {hour_of(time_us) + beside for time_us in times for beside in (-1, 0, 1)}
        hours = [hour for hour in self._database.hours("payloads") if hour in near]
        uids = [message.uid for message in messages]
        values, within = {"uids": uids}, {"uid": (min(uids, default=0), max(uids, default=0))}
        condition = "uid in (select unnest($uids::bigint[]))"
        rows = self._database.select("payloads", _COLUMNS, condition, values, hours, within=within)
        found: dict[int, list[Payload]] = {}
        for row in sorted(set(rows), key=lambda row: row[:2]):
            found.setdefault(row[0], []).append(_payload(row))
        return found


def _payload(row: Row) -> Payload:
    facts = dict(zip(_FACTS, row[1:-3], strict=True))
    message_format, properties, body = row[-3:]
    told = {"properties": _read(message_format, properties), "text": text_of(body, whole=len(body) == facts["size"])}
    return Payload(**facts, **told, kept=len(body), body=base64.b64encode(body).decode())


def _read(name: str, properties: bytes) -> dict[str, Any]:
    """What can be said of properties; what cannot be read says nothing."""
    try:
        message_format = format_named(name)
        told = {each: message_format.text(properties, each) for each in _PROPERTIES}
        headers = json.loads(arguments.dump(message_format.headers(properties)) or b"{}")
    except (BrokerError, ValueError):
        return {}
    found: dict[str, Any] = {each: text for each, text in told.items() if text is not None}
    return found | ({"headers": headers} if headers else {})
