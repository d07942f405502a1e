"""Every method's bytes, beside a codec of another project."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands, frame

from services.common.errors import SyntaxFault
from services.gateway.protocols.amqp_0_9 import frames, wire
from services.gateway.protocols.amqp_0_9.method import Method, decode, encode
from services.gateway.protocols.amqp_0_9.methods import basic, exchange, queue
from services.gateway.protocols.amqp_0_9.versions import AMQP_0_9_1

_SAMPLES: dict[wire.Wire, Any] = {
    wire.Wire.BIT: True,
    wire.Wire.OCTET: 9,
    wire.Wire.SHORT: 300,
    wire.Wire.LONG: 70_000,
    wire.Wire.LONG_LONG: 1 << 40,
    wire.Wire.SHORT_STRING: "näme",
    wire.Wire.LONG_STRING: b"long",
    wire.Wire.TABLE: {"k": "v"},
}
_VALUES = {
    wire.Wire.BIT: st.booleans(),
    wire.Wire.OCTET: st.integers(0, 255),
    wire.Wire.SHORT: st.integers(0, 65535),
    wire.Wire.LONG: st.integers(0, (1 << 32) - 1),
    wire.Wire.LONG_LONG: st.integers(0, (1 << 64) - 1),
    wire.Wire.SHORT_STRING: st.text(max_size=60),
    wire.Wire.LONG_STRING: st.binary(max_size=60),
    wire.Wire.TABLE: st.dictionaries(st.text(max_size=8), st.integers(0, 9), max_size=3),
}
_METHODS = sorted(AMQP_0_9_1.methods.values(), key=lambda kind: kind.code)
_QPIDS = {exchange.Bound, exchange.BoundOk}  # of which pamqp knows nothing
_SPECIFIED = [kind for kind in _METHODS if kind not in _QPIDS]


def _sample(kind: type[Method]) -> Method:
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    values = [_SAMPLES[its] for its in kind.wires]
    # pamqp insists on the one value that reserved fields may have.
    return kind(
        *[_reserved(value) if name.startswith("reserved") else value for name, value in zip(names, values, strict=True)]
    )


def _reserved(value: Any) -> Any:
    return type(value)()


def test_every_method_of_the_specification_is_there() -> None:
    """The table has the methods, with the names and ids, that pamqp generated from the XML."""
    theirs = {code: kind.name for code, kind in commands.INDEX_MAPPING.items()}
    ours = {
        code: "".join(part.capitalize() for part in kind.name.partition(".")[2].split("-"))
        for code, kind in AMQP_0_9_1.methods.items()
        if kind not in _QPIDS
    }
    assert {code: name.partition(".")[2].lower() for code, name in theirs.items()} == {
        code: name.lower() for code, name in ours.items()
    }


@pytest.mark.parametrize("kind", _SPECIFIED, ids=lambda kind: kind.name)
def test_fields_are_those_of_the_specification(kind: type[Method]) -> None:
    """Wire types in the order that pamqp generated from the XML."""
    theirs = commands.INDEX_MAPPING[kind.code]
    assert [its.value for its in kind.wires] == [getattr(theirs, f"_{name}") for name in theirs.__slots__]


# pamqp insists on a value of its own in the reserved field of these two.
_WITHOUT_QUIRKS = [kind for kind in _SPECIFIED if kind.name not in {"channel.open", "channel.open-ok"}]


@pytest.mark.filterwarnings("ignore:This command is deprecated")
@pytest.mark.parametrize("kind", _WITHOUT_QUIRKS, ids=lambda kind: kind.name)
def test_another_codec_reads_and_rewrites_every_method(kind: type[Method]) -> None:
    """pamqp reads what we write, writes the same bytes, and we read them."""
    method = _plausible(_sample(kind))
    data = frames.frame(frames.METHOD, 1, encode(method))
    _, channel, theirs = frame.unmarshal(data)
    assert channel == 1
    assert frame.marshal(theirs, 1) == data
    assert decode(kind, data[7:-1]) == method


def _plausible(method: Method) -> Method:
    """Within what pamqp's validation lets pass (names without umlauts, "/" for a host)."""
    values = [
        "name" if isinstance(value, str) and value else value
        for value in (getattr(method, field.name) for field in fields(method))  # type: ignore[arg-type]
    ]
    return type(method)(*values)


@given(st.data())
def test_every_method_survives_the_round_trip(data: st.DataObject) -> None:
    """With any values of the fields."""
    kind = data.draw(st.sampled_from(_METHODS))
    method = kind(*[data.draw(_VALUES[its]) for its in kind.wires])
    assert decode(kind, encode(method)) == method


@given(st.sampled_from(_METHODS), st.binary(max_size=60))
def test_any_arguments_decode_or_are_a_syntax_fault(kind: type[Method], arguments: bytes) -> None:
    """No bytes raise anything but SyntaxFault."""
    try:
        decode(kind, b"\0\0\0\0" + arguments)
    except SyntaxFault:
        return


def test_bits_share_an_octet() -> None:
    """Lowest bit first (section 4.2.5.2)."""
    declare = queue.Declare(0, "q", False, True, False, True, False, {})
    assert encode(declare) == b"\0\x32\0\x0a\0\0\x01q\x0a\0\0\0\0"


@pytest.mark.parametrize("arguments", [b"", b"\0" * 8, b"\0" * 10])
def test_truncated_and_overlong_arguments_are_refused(arguments: bytes) -> None:
    """basic.ack has nine bytes of arguments."""
    with pytest.raises(SyntaxFault):
        decode(basic.Ack, b"\0\x3c\0\x50" + arguments)


@pytest.mark.parametrize(
    "method",
    [queue.PurgeOk(1 << 32), basic.Cancel("x" * 256, False), queue.PurgeOk(-1), basic.Cancel("\ud800", False)],
    ids=["long", "text", "negative", "surrogate"],
)
def test_values_that_do_not_fit_are_refused(method: Method) -> None:
    """Writing is as strict as reading."""
    with pytest.raises(SyntaxFault):
        encode(method)
