"""AMQP 1.0: application properties, and a body that is a value; ids in the reply have the type that they came with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from services.common.errors import BrokerError, SyntaxFault
from services.common.message.amqp_1_0 import composite, neutral
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.decode import decode, decode_at
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.passing import has_many
from services.common.message.amqp_1_0.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    Properties,
    sections,
)
from services.common.message.bounds import LITTLE, MOST_READ
from services.gateway.management.forms import JSON, Requester, dump_json, is_json, load_json, plain
from services.gateway.protocols.amqp_1_0.addresses import meanings
from services.gateway.vocabulary import Node

_INT: Final = range(-(1 << 31), 1 << 31)


class Amqp10Form:
    """See services.gateway.management.forms.Form."""

    def requester(self, properties: bytes) -> Requester:
        """As Form says."""
        its = _properties(properties)
        correlation = its.message_id if its.correlation_id is None else its.correlation_id
        return Requester(_address(its.reply_to), correlation, is_json(its.content_type))

    def said(self, properties: bytes, body: bytes) -> tuple[Mapping[str, Any], Any]:
        """As Form says."""
        found = _section(properties, APPLICATION_PROPERTIES)
        if not isinstance(found, dict | None):
            raise SyntaxFault("application properties are no map")
        return plain(neutral.plain_map(found or {})), _body(body, json=is_json(_properties(properties).content_type))

    def reply(self, to: Requester, headers: Mapping[str, Any], body: Any) -> tuple[bytes, bytes]:  # noqa: ANN401 - any
        """As Form says; without a body it is null (section 3.2: a message has one)."""
        in_json = to.json and body is not None
        its = Properties(
            str(uuid4()),
            to=to.reply_to,
            correlation_id=to.correlation,
            content_type=JSON if in_json else None,
        )
        application = {name: _typed(value) for name, value in headers.items()}
        told = _described(DATA, dump_json(body)) if in_json else _described(VALUE, neutral.typed(body))
        return composite.write(its) + _described(APPLICATION_PROPERTIES, application), told


def _properties(raw: bytes) -> Properties:
    return composite.read(Properties, _section(raw, PROPERTIES) or [])


def _section(raw: bytes, code: int) -> Any:  # noqa: ANN401 - whatever the peer says
    return next((decode_at(raw, each.value)[0] for each in sections(raw) if each.code == code), None)


def _address(reply_to: object) -> str:
    """RabbitMQ's forms are names and keys here; every other stays as it is."""
    if not isinstance(reply_to, str) or not reply_to.startswith("/"):
        return reply_to if isinstance(reply_to, str) else ""
    try:
        meant = meanings(reply_to)[0]
    except BrokerError:
        return ""
    return meant.name if meant.node is Node.QUEUE else f"{meant.name}/{meant.key or ''}"


def _body(body: bytes, *, json: bool) -> Any:  # noqa: ANN401 - whatever the peer says
    its = sections(body)
    if len(body) > LITTLE and has_many(body, [each.value for each in its], MOST_READ):
        raise SyntaxFault(f"a request has no more than {MOST_READ} values")
    found = [(each.code, body[each.value : each.end]) for each in its]
    values = [decode(raw) for code, raw in found if code in {DATA, SEQUENCE, VALUE}]
    match found[0][0] if found else VALUE:
        case code if code == DATA:
            data = b"".join(each for each in values if isinstance(each, bytes))
            return load_json(data) if json else data.decode(errors="replace") or None
        case code if code == SEQUENCE:
            return [plain(neutral.plain(each)) for part in values if isinstance(part, list) for each in part]
    value = values[0] if values else None
    return load_json(value.encode()) if json and isinstance(value, str) else plain(neutral.plain(value))


def _typed(value: Any) -> Any:  # noqa: ANN401 - any value
    """StatusCode is an int, as Broker-J's is, not a long."""
    if isinstance(value, int) and not isinstance(value, bool) and value in _INT:
        return v.Int(value)
    return neutral.typed(value)


def _described(code: int, value: object) -> bytes:
    return encode(v.Described(v.ULong(code), value))


FORM = Amqp10Form()
