"""Messages of AMQP 1.0, as clients write and read them; and outcomes and errors, by the names that histories have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from services.common.message.amqp_1_0 import composite, neutral
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.composite import Composite
from services.common.message.amqp_1_0.decode import decode_at
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    Header,
    Properties,
    sections,
)
from services.gateway.protocols.amqp_1_0.performatives import Error
from services.gateway.protocols.amqp_1_0.states import Accepted, Modified, Rejected, Released
from tests.simulation.channel import body_of
from tests.simulation.history import SAID, Sent

OUTCOMES: Final[dict[str, tuple[str, Composite | None]]] = {
    "ack": ("ack", Accepted()),
    "reject": ("reject", Rejected()),
    "undeliverable": ("requeue", Modified(undeliverable_here=True)),
    "requeue": ("requeue", Modified(delivery_failed=True)),
    "modify": ("requeue", Modified(delivery_failed=False)),
    "release": ("requeue", Released()),
    "quiet": ("requeue", None),  # settled without a word
}
"""What a client does with a delivery: as histories call it, and as it is said."""

ANNOTATED: Final = frozenset({"modify", "undeliverable"})
"""Those that add an annotation to the message."""

NO_ATTEMPT: Final = frozenset({"release", "modify", "undeliverable"})
"""Those that do not count as one: released, and modified without delivery-failed (3.4.4, 3.4.5)."""

_CODES: Final = {
    "amqp:not-found": 404,
    "amqp:resource-deleted": 404,
    "amqp:unauthorized-access": 403,
    "amqp:resource-locked": 405,
    "amqp:precondition-failed": 406,
    "amqp:resource-limit-exceeded": 506,
    "amqp:not-allowed": 530,
    "amqp:not-implemented": 540,
    "amqp:connection:forced": 320,
}
_OTHERWISE: Final = 541
_ANNOTATIONS: Final = "x-opt-"  # how the names of headers begin that are not the application's

DESCRIBED: Final = b"\x00"
"""How sections begin, and no properties of 0-9-1 that say how a message is delivered."""


def reason(error: Any) -> tuple[int, str]:
    """The code that 0-9-1 has for an error's condition, and its text; 0 without an error."""
    if not isinstance(error, Error):
        return 0, ""
    return _CODES.get(error.condition, _OTHERWISE), f"{error.condition} {error.description}"


def annotated(state: Composite | None, said: str) -> Composite | None:
    """The same outcome, with such an annotation."""
    if not isinstance(state, Modified):
        return state
    return replace(state, message_annotations={v.Symbol(SAID): said})


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each row of ascending numbers that follow one another."""
    found: list[tuple[int, int]] = []
    for each in numbers:
        joins = found and found[-1][1] + 1 == each
        found[-1:] = [(found[-1][0], each)] if joins else [*found[-1:], (each, each)]
    return found


class Came(NamedTuple):
    """Properties by the names of 0-9-1, for the judge."""

    message_id: str | None
    delivery_mode: int
    priority: int | None
    expiration: str | None
    headers: dict[str, Any]


class Read(NamedTuple):
    """A message that came. `went`: to which exchange, with which key; of this protocol's own it says neither."""

    properties: Came
    payload: bytes
    attempts: int  # before this one
    went: tuple[str | None, str | None]


def written(sent: Sent, *, subject: bool) -> bytes:
    """Its routing key is its subject, if the link does not say it."""
    header = Header(durable=sent.persistent, priority=sent.priority, ttl=sent.ttl)
    properties = Properties(message_id=sent.id, subject=sent.key if subject else None)
    annotations = {v.Symbol(name): value for name, value in sent.headers.items() if name.startswith(_ANNOTATIONS)}
    application = {name: value for name, value in sent.headers.items() if name not in annotations}
    return b"".join(
        (
            composite.write(header),
            _section(MESSAGE_ANNOTATIONS, annotations) if annotations else b"",
            composite.write(properties),
            _section(APPLICATION_PROPERTIES, application) if application else b"",
            _section(DATA, body_of(sent.id, sent.size)),
        )
    )


def _section(code: int, value: Any) -> bytes:
    return encode(v.Described(v.ULong(code), value))


def read(message: bytes) -> Read:
    """Raises SyntaxFault for what is none."""
    found: dict[int, list[Any]] = {}
    for each in sections(message):
        found.setdefault(each.code, []).append(decode_at(message, each.value)[0])
    header = composite.read(Header, found.get(HEADER, [[]])[0])
    properties = composite.read(Properties, found.get(PROPERTIES, [[]])[0])
    annotations, application = (found.get(code, [{}])[0] for code in (MESSAGE_ANNOTATIONS, APPLICATION_PROPERTIES))
    came = Came(
        properties.message_id,
        2 if header.durable else 1,
        header.priority,
        None if header.ttl is None else str(header.ttl),
        neutral.plain_map(annotations) | neutral.plain_map(application),
    )
    return Read(came, b"".join(found.get(DATA, [])), header.delivery_count or 0, _went(properties.to))


def _went(address: str | None) -> tuple[str | None, str | None]:
    """By the address that a message of another protocol has got."""
    if address is None:
        return None, None
    exchange, slash, key = address.partition("/")
    return (exchange, key) if slash else ("", address)
