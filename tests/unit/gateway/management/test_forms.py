"""Requests and replies of the management node as each protocol writes them."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import SyntaxFault
from services.common.message import amqp_map
from services.common.message.amqp_0_9 import FORMAT as FORMAT_0_9
from services.common.message.amqp_0_9 import compose
from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.decode import decode_at
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.format import FORMAT as FORMAT_1_0
from services.common.message.amqp_1_0.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    Properties,
    sections,
)
from services.gateway.management.forms import Form, Requester, form_of
from services.gateway.management.forms.amqp_0_9 import FORM as FORM_0_9
from services.gateway.management.forms.amqp_1_0 import FORM as FORM_1_0

HEADERS = {"statusCode": 200, "statusDescription": "OK"}


def properties_0_9(headers: dict[str, Any] | None = None, **texts: str) -> bytes:
    said = {name.replace("_", "-"): text for name, text in texts.items()}
    return compose(said, headers or {}, persistent=False, priority=0)


def section(code: int, value: object) -> bytes:
    return encode(v.Described(v.ULong(code), value))


def read_1_0(properties: bytes) -> tuple[Properties, dict[Any, Any]]:
    found = {each.code: decode_at(properties, each.value)[0] for each in sections(properties)}
    return composite.read(Properties, found[PROPERTIES]), found[APPLICATION_PROPERTIES]


def test_forms_of_formats() -> None:
    """Each format in which somebody is answered has one; of another there is none."""
    assert form_of("amqp-0-9") is FORM_0_9
    assert form_of("amqp-1-0") is FORM_1_0
    assert form_of("another") is None


# ------------------------------------------------------------------ 0-8, 0-9, 0-9-1


@pytest.mark.parametrize(
    ("content_type", "body", "value"),
    [
        ("amqp/map", amqp_map.dump({"a": [1]}), {"a": [1]}),
        ("amqp/list", amqp_map.dump([1]), [1]),
        ("application/json; charset=utf-8", b'{"a": 1}', {"a": 1}),
        ("application/vnd.x+json", b"", None),
        ("text/plain", b"text", "text"),
        ("application/octet-stream", b"\xff", "�"),
    ],
)
def test_bodies_of_0_9(content_type: str, body: bytes, value: Any) -> None:
    """A body is what its content type says."""
    properties = properties_0_9({"operation": "READ"}, content_type=content_type)
    assert FORM_0_9.said(properties, body) == ({"operation": "READ"}, value)


def test_requesters_of_0_9() -> None:
    """A reply goes to reply-to, with the correlation id, or else the message id; in JSON to who asks in it."""
    both = properties_0_9(reply_to="q", correlation_id="c", message_id="m", content_type="application/json")
    assert FORM_0_9.requester(both) == Requester("q", b"c", json=True)
    assert FORM_0_9.requester(properties_0_9(reply_to="q", message_id="m")) == Requester("q", b"m")
    assert FORM_0_9.requester(properties_0_9()) == Requester()


@pytest.mark.parametrize(
    ("body", "json_too", "content_type", "raw"),
    [
        ({"a": 1}, False, "amqp/map", amqp_map.dump({"a": 1})),
        ([1], False, "amqp/list", amqp_map.dump([1])),
        (True, False, "application/json", b"true"),
        ({"a": "é"}, True, "application/json", '{"a": "é"}'.encode()),
        (None, True, None, b""),
    ],
)
def test_replies_of_0_9(body: Any, json_too: bool, content_type: str | None, raw: bytes) -> None:
    """A map or a list is Qpid's, what is neither is JSON; a reply without a body has no content type."""
    properties, told = FORM_0_9.reply(Requester("q", "c", json=json_too), HEADERS, body)
    assert told == raw
    assert FORMAT_0_9.text(properties, "content-type") == content_type
    assert FORMAT_0_9.text(properties, "correlation-id") == "c"
    assert FORMAT_0_9.headers(properties) == HEADERS
    assert UUID(FORMAT_0_9.text(properties, "message-id"))
    assert FORMAT_0_9.attributes(properties).persistent is False


def test_no_json() -> None:
    """Is a typed error."""
    with pytest.raises(SyntaxFault, match="no JSON"):
        FORM_0_9.said(properties_0_9(content_type="application/json"), b"{")


# ------------------------------------------------------------------ 1.0


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (section(VALUE, {"a": v.UInt(1), v.Symbol("b"): [v.Symbol("s")]}), {"a": 1, "b": ["s"]}),
        (section(VALUE, [UUID(int=1)]), [str(UUID(int=1))]),
        (section(VALUE, None), None),
        (section(VALUE, {"t": v.Timestamp(7000), "x": b"raw"}), {"t": 7000, "x": "raw"}),
        (section(SEQUENCE, [1, 2]) + section(SEQUENCE, [3]), [1, 2, 3]),
        (section(DATA, b"te") + section(DATA, b"xt"), "text"),
    ],
)  # fmt: skip
def test_bodies_of_1_0(body: bytes, value: Any) -> None:
    """A value, a sequence, or data; values are plain ones."""
    properties = section(APPLICATION_PROPERTIES, {"operation": "READ", "count": v.UByte(3)})
    assert FORM_1_0.said(properties, body) == ({"operation": "READ", "count": 3}, value)


@pytest.mark.parametrize("body", [section(DATA, b'{"a": 1}'), section(VALUE, '{"a": 1}')])
def test_json_of_1_0(body: bytes) -> None:
    """Data, or a text, of that content type is read, and answered in it."""
    properties = composite.write(Properties(content_type="application/json", reply_to="q"))
    assert FORM_1_0.said(properties, body) == ({}, {"a": 1})
    requester = FORM_1_0.requester(properties)
    properties, told = FORM_1_0.reply(requester, HEADERS, {"a": [1]})
    [data] = sections(told)
    assert (data.code, json.loads(decode_at(told, data.value)[0])) == (DATA, {"a": [1]})
    assert read_1_0(properties)[0].content_type == "application/json"


@pytest.mark.parametrize("identity", ["text", UUID(int=7), v.ULong(7), b"octets"])
def test_ids_of_1_0(identity: Any) -> None:
    """Section 3.2.4: the reply's correlation id is of the type and value of the request's."""
    of_message = FORM_1_0.requester(composite.write(Properties(message_id=identity, reply_to="q")))
    of_correlation = FORM_1_0.requester(composite.write(Properties(message_id="m", correlation_id=identity)))
    assert of_message.correlation == of_correlation.correlation == identity
    properties, told = FORM_1_0.reply(of_message, HEADERS, {"a": None, "b": [1, "x"]})
    its, headers = read_1_0(properties)
    assert (its.correlation_id, type(its.correlation_id), its.to) == (identity, type(identity), "q")
    assert (headers, type(headers["statusCode"])) == (HEADERS, v.Int)
    [value] = sections(told)
    assert (value.code, decode_at(told, value.value)[0]) == (VALUE, {"a": None, "b": [1, "x"]})
    assert FORMAT_1_0.attributes(properties).persistent is False


@pytest.mark.parametrize(
    ("address", "reply_to"),
    [
        ("q", "q"), ("x/k", "x/k"), ("/queues/a%2Fb", "a/b"), ("/queue/q", "q"), ("/exchanges/x/k", "x/k"),
        ("/topic/k", "amq.topic/k"), ("/unknown", ""), (None, ""), (7, ""),
    ],
)  # fmt: skip
def test_addresses_of_1_0(address: Any, reply_to: str) -> None:
    """RabbitMQ's forms are what they name; what is no address is none."""
    assert FORM_1_0.requester(composite.write(Properties(reply_to=address))).reply_to == reply_to


def test_a_reply_without_a_body() -> None:
    """Section 3.2: a message has one: null."""
    _, told = FORM_1_0.reply(Requester("q", json=True), HEADERS, None)
    assert told == section(VALUE, None)


@given(st.sampled_from([FORM_0_9, FORM_1_0]), st.binary(max_size=80), st.binary(max_size=80))
def test_bytes_that_are_none(form: Form, properties: bytes, body: bytes) -> None:
    """What cannot be read is a typed error, and never anything else."""
    with suppress(SyntaxFault):
        form.requester(properties)
    with suppress(SyntaxFault):
        json.dumps(form.said(properties, body), allow_nan=False)


@pytest.mark.parametrize("content_type", ["amqp/map", "amqp/list", "application/json", "text/plain"])
@given(body=st.binary(max_size=80))
def test_bodies_that_are_none(content_type: str, body: bytes) -> None:
    """Of each content type too."""
    with suppress(SyntaxFault):
        FORM_0_9.said(properties_0_9(content_type=content_type), body)


def test_what_json_has_not() -> None:
    """Is what is next to it: bytes, decimals, moments and infinity among headers break nothing."""
    headers = {"b": b"\xff", "d": Decimal("1.5"), "t": datetime(2026, 1, 1, tzinfo=UTC), "l": [{"f": float("inf")}]}
    said, _ = FORM_0_9.said(properties_0_9(headers), b"")
    assert said == {"b": "�", "d": "1.5", "t": 1767225600000, "l": [{"f": "inf"}]}


def test_a_moment() -> None:
    """Is milliseconds, as in all of the model."""
    body = section(VALUE, [v.Timestamp(int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000))])
    assert FORM_1_0.said(b"", body)[1] == [1767225600000]
