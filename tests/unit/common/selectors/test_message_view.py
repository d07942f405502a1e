"""A message as selectors see it, whichever protocol its publisher speaks."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pamqp import commands, header

from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.sections import APPLICATION_PROPERTIES, Properties
from services.common.message.facts import Facts
from services.common.selectors.message import MessageView
from services.common.selectors.selector import selector


def _basic(**values: Any) -> bytes:
    return header.ContentHeader(properties=commands.Basic.Properties(**values)).marshal()[12:]


def _view(properties: bytes, format_name: str = "amqp-0-9", **more: Any) -> MessageView:
    return MessageView(Facts("/", "", "q", format_name, persistent=True, priority=7), properties, **more)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JMSDestination", None),
        ("JMSReplyTo", "r"),
        ("JMSType", "t"),
        ("JMSDeliveryMode", "PERSISTENT"),
        ("JMSPriority", 7),
        ("JMSMessageID", "m"),
        ("AMQMessageID", "m"),
        ("JMSTimestamp", 5000),
        ("JMSCorrelationID", "c"),
        ("JMSExpiration", 99),
        ("JMSRedelivered", True),
        ("number", 5),
        ("decimal", 1.5),
        ("moment", 3000),
        ("nothing", None),
    ],
)
def test_identifiers(name: str, value: object) -> None:
    """JMS's names are of the message, all others of its headers."""
    properties = _basic(
        reply_to="r",
        message_type="t",
        message_id="m",
        correlation_id="c",
        timestamp=datetime.fromtimestamp(5, UTC),
        headers={"number": 5, "decimal": Decimal("1.5"), "moment": datetime.fromtimestamp(3, UTC), "JMSType": "no"},
    )
    assert _view(properties, expires=99, redelivered=True).look_up(name) == value


def test_of_amqp_1_0() -> None:
    """What is a property there is the same property here; headers are application properties."""
    application = encode(v.Described(v.ULong(APPLICATION_PROPERTIES), {"color": "blue"}))
    view = _view(composite.write(Properties(correlation_id="c", creation_time=5000)) + application, "amqp-1-0")
    assert selector("color = 'blue' AND JMSCorrelationID = 'c' AND JMSTimestamp = 5000").selects(view.look_up)


@pytest.mark.parametrize("properties", [b"", b"\xff\xff", b"\x20\x00\x00\x00\x00\x09broken"])
def test_what_cannot_be_read(properties: bytes) -> None:
    """It is ignored, and does no harm."""
    look_up = _view(properties).look_up
    assert [look_up(name) for name in ("JMSType", "JMSTimestamp", "color")] == [None, None, None]


def test_a_time_too_late() -> None:
    """One for which other protocols have no room is none."""
    assert _view(b"\x00\x40" + b"\xff" * 8).look_up("JMSTimestamp") is None
