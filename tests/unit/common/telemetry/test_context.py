from __future__ import annotations

import pytest

from services.common.telemetry.context import SpanContext, new_root, parse

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize("value", [VALID, VALID.encode(), bytearray(VALID, "ascii"), f"01-{TRACE}-{SPAN}-01-more"])
def test_valid(value: object) -> None:
    """A context is read from text or bytes, and from later versions as far as this one goes."""
    found = parse(value, "congo=t61rcWkgMzE")
    assert found == SpanContext(int(TRACE, 16), int(SPAN, 16), "congo=t61rcWkgMzE", sampled=True, remote=True)


def test_not_sampled() -> None:
    """A publisher that does not trace a message says so in the flags; other flags than `sampled` mean nothing here."""
    for flags, sampled in (("00", False), ("02", False), ("03", True), ("ff", True)):
        found = parse(f"00-{TRACE}-{SPAN}-{flags}")
        assert found is not None
        assert found.sampled is sampled


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        b"",
        1,
        1.5,
        True,
        {"traceparent": VALID},
        [VALID],
        VALID.upper(),
        f" {VALID}",
        f"{VALID} ",
        f"{VALID}\n",
        f"{VALID}-more",
        VALID[:-1],
        f"ff-{TRACE}-{SPAN}-01",
        f"01-{TRACE}-{SPAN}-01more",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-0g",
        f"00-{'٣' * 32}-{SPAN}-01",
        f"00_{TRACE}_{SPAN}_01",
        "x" * 55,
        "\0" * 55,
        VALID * 1000,
        VALID.encode() * 1_000_000,
        b"\xff" * 55,
    ],
    ids=lambda value: repr(value)[:40],
)
def test_hostile_traceparent(value: object) -> None:
    """Anything that is not exactly a traceparent is ignored."""
    assert parse(value) is None


@pytest.mark.parametrize("value", [None, 5, [], "x" * 513, "a=1\r\nb=2", "a=\x00", b"\xff\xfe", "ключ=1"])
def test_hostile_tracestate(value: object) -> None:
    """A tracestate that is none, or is too long, takes nothing from the context."""
    found = parse(VALID, value)
    assert found is not None
    assert not found.state


def test_travels() -> None:
    """What goes from one service to another arrives the same, tracestate too."""
    for context in (new_root(), SpanContext(1, 2, "a=b,c=d")):
        assert SpanContext.from_bytes(context.to_bytes()) == context._replace(remote=True)


def test_child() -> None:
    """A child is another span of the same trace, and says so in its header."""
    root = new_root()
    child = root.child()
    assert child.trace_id == root.trace_id
    assert child.span_id != root.span_id
    assert parse(child.traceparent()) == child._replace(remote=True)
