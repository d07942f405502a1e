"""What becomes of a message that a queue gives up: headers as RabbitMQ 3.10 writes them, and which way is a circle.

x-death is a list of tables, one for each (queue, reason), the most recent first, with how often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from services.common.errors import SyntaxFault
from services.common.message import MessageFormat, format_named
from services.queue.machine.context import REJECTED, DeadLetter

_DEATHS = "x-death"
_MOST_DEATHS = (1 << 63) - 1


def routing_keys(letter: DeadLetter, headers: Mapping[str, Any]) -> list[str]:
    """Where it is sent: the queue's dead-letter key, else the keys that it was published with."""
    override = letter.queue.dead_letter_key
    return [override] if override is not None else _published_keys(letter, headers)


def rewrite(letter: DeadLetter) -> tuple[bytes, dict[str, Any]]:
    """Its new properties, and the headers in them; those of its publisher are left out when nobody can read them."""
    message = letter.entry.message
    message_format = format_named(message.facts.format)
    headers = _headers(message_format, message.properties)
    expiration = message_format.text(message.properties, "expiration")
    deaths = headers.get(_DEATHS)
    if not isinstance(deaths, list):
        deaths = []
        headers["x-first-death-reason"] = letter.reason
        headers["x-first-death-queue"] = letter.queue.name
        headers["x-first-death-exchange"] = message.facts.exchange
    keys = _published_keys(letter, headers)
    headers[_DEATHS] = _count(letter, deaths, keys, expiration)
    if letter.queue.dead_letter_key is not None:
        headers.pop("CC", None)
    return message_format.with_headers(message.properties, headers, drop_expiration=True), headers


def is_circle(letter: DeadLetter, headers: Mapping[str, Any], queue: str) -> bool:
    """Whether it was on `queue` before and nobody rejected it since: then it would go round for ever."""
    if letter.reason == REJECTED:
        return False
    for death in headers.get(_DEATHS, ()):
        if not isinstance(death, Mapping):
            continue
        if death.get("reason") == REJECTED:
            return False
        if death.get("queue") == queue:
            return True
    return False


def _headers(message_format: MessageFormat, properties: bytes) -> dict[str, Any]:
    try:
        return dict(message_format.headers(properties))
    except SyntaxFault:
        return {}


def _published_keys(letter: DeadLetter, headers: Mapping[str, Any]) -> list[str]:
    copies = headers.get("CC", ())
    more = [key for key in copies if isinstance(key, str)] if isinstance(copies, list) else []
    return [letter.entry.message.facts.routing_key, *more]


def _count(letter: DeadLetter, deaths: Sequence[Any], keys: list[str], expiration: str | None) -> list[Any]:
    def is_same(death: object) -> bool:
        return (
            isinstance(death, Mapping)
            and death.get("queue") == letter.queue.name
            and death.get("reason") == letter.reason
        )

    others = [death for death in deaths if not is_same(death)]
    known = next((death for death in deaths if is_same(death)), None)
    if known is not None:
        count = known.get("count", 0)
        # A publisher may have written anything there.
        return [{**known, "count": min(count + 1, _MOST_DEATHS) if isinstance(count, int) else 1}, *others]
    death: dict[str, Any] = {
        "count": 1,
        "reason": letter.reason,
        "queue": letter.queue.name,
        "time": datetime.fromtimestamp(letter.time_ms // 1000, UTC),
        "exchange": letter.entry.message.facts.exchange,
        "routing-keys": keys,
    }
    if expiration is not None:
        death["original-expiration"] = expiration
    return [death, *others]
