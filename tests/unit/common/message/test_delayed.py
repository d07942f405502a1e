"""When a message may be delivered, by what its publisher says."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.errors import SyntaxFault
from services.common.message.amqp_0_9 import FORMAT
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.format import FORMAT as FORMAT_1_0
from services.common.message.facts import Attributes

PROPERTIES = b"\x00\x00"


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"x-delay": 1500}, (None, 1500)),
        ({"x-qpid-not-valid-before": 1 << 41}, (1 << 41, None)),
        ({"a": "b", "x-qpid-not-valid-before": 7, "x-delay": 5}, (7, 5)),
        ({"x-delay": 0}, (None, None)),
        ({"x-delay": -5}, (None, None)),
        ({"x-delay": "5"}, (None, None)),
        ({"x-delay": True}, (None, None)),
        ({"x-delay": (1 << 62)}, (None, None)),
        ({"my-x-delay": 5}, (None, None)),
        ({"text": "\x07x-delay"}, (None, None)),
    ],
)
def test_headers(headers: dict[str, Any], said: tuple[int | None, int | None]) -> None:
    """Whole numbers above 0; any other value is ignored."""
    found = FORMAT.attributes(FORMAT.with_headers(PROPERTIES, headers))
    assert found == Attributes(not_before=said[0], delay_ms=said[1])


def test_a_table_that_cannot_be_read() -> None:
    """Is refused, as one without a delay is."""
    properties = FORMAT.with_headers(PROPERTIES, {"x-delay": 5}).replace(b"I", b"?").replace(b"l", b"?")
    with pytest.raises(SyntaxFault):
        FORMAT.attributes(properties)


def test_the_same_but_for_the_delay() -> None:
    """What is remembered of the other properties is not taken for it; what is remembered does not pile up."""
    for delay in (1, 2, 1):
        properties = FORMAT.with_headers(PROPERTIES, {"x-delay": delay, "text": "x" * 1000})
        assert FORMAT.attributes(properties).delay_ms == delay
    for delay in range(1, 10_000):
        assert FORMAT.attributes(FORMAT.with_headers(PROPERTIES, {"x-delay": delay})).delay_ms == delay
    assert max(len(FORMAT._memo), len(FORMAT._known), len(FORMAT._interned)) <= 4096


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"x-opt-delivery-time": v.Timestamp(9)}, 9),
        ({"x-opt-delivery-time": 9, "x-qpid-not-valid-before": 5}, 9),
        ({"x-qpid-not-valid-before": v.ULong(5)}, 5),
        ({"x-opt-delivery-time": "soon"}, None),
        ({"x-opt-delivery-time": -1}, None),
        ({"other": "x-opt-delivery-time"}, None),
    ],
)
def test_annotations(annotations: dict[str, Any], said: int | None) -> None:
    """Of AMQP 1.0, each a moment."""
    section = v.Described(v.ULong(0x72), {v.Symbol(name): value for name, value in annotations.items()})
    assert FORMAT_1_0.attributes(encode(section)).not_before == said
