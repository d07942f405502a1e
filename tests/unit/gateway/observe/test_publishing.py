"""What the span of a message that is received says of it."""

from __future__ import annotations

from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0.sections import Properties
from services.common.message.facts import Attributes, Facts
from services.common.telemetry import conventions as c
from services.gateway.observe.tracing.publishing import _span
from services.gateway.observe.tracing.sampler import Pick
from services.gateway.vocabulary import Kind, Publish


def test_an_id_that_nobody_can_ask_for_is_not_said() -> None:
    """It may be as large as a message, and thousands of spans may wait for a collector."""
    properties = composite.write(Properties(message_id="m" * 1025, correlation_id="c" * 1024))
    publish = Publish(1, [Kind(Facts("/", "e", "", "amqp-1-0"), Attributes())], [properties], [b""])
    said = _span(publish, 0, Pick(0, None, "rule"), {}, 0, None).attributes
    assert (said.get(c.MESSAGE_ID), said.get(c.CONVERSATION_ID)) == (None, "c" * 1024)
