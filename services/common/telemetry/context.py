"""A span's place in a trace: trace and span id (W3C Trace Context, level 2), read from clients and passed on by us.

A client's context is believed only when it is exactly what the recommendation says; anything else is ignored, and stays
in the message as it came.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

# Section 3.2.2: version 00 is these 55 characters; of later versions the same 55 are read, and a dash must follow.
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_LENGTH = 55
_LONGEST = 512  # of a later version's traceparent, and of tracestate (section 3.3.1.5 asks for at least so much)
_SAMPLED = 0x01
# Section 3.3.1.1: visible characters; what is inside the members is up to their vendors.
_TRACESTATE = re.compile(r"[\x20-\x7e]{1,512}")

_IDS = random.SystemRandom()


class SpanContext(NamedTuple):
    """A span, as others refer to it. `state` is tracestate as it came; `remote`: the span is another process's."""

    trace_id: int
    span_id: int
    state: str = ""
    sampled: bool = True
    remote: bool = False

    def child(self) -> SpanContext:
        """A new span of the same trace."""
        return SpanContext(self.trace_id, new_span_id(), self.state)

    def traceparent(self) -> str:
        """The value of a traceparent header."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{'01' if self.sampled else '00'}"

    def to_bytes(self) -> bytes:
        """16 bytes, 8 bytes, tracestate; only sampled contexts are passed on."""
        return self.trace_id.to_bytes(16, "big") + self.span_id.to_bytes(8, "big") + self.state.encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> SpanContext:
        """Reads what `to_bytes` gave in another of our processes."""
        return cls(
            int.from_bytes(data[:16], "big"), int.from_bytes(data[16:24], "big"), data[24:].decode(), remote=True
        )


def new_root() -> SpanContext:
    """The first span of a new trace."""
    return SpanContext(_IDS.getrandbits(128) or 1, new_span_id())


def new_span_id() -> int:
    """Never 0, which means none."""
    return random.getrandbits(64) or 1


def parse(traceparent: object, tracestate: object = "") -> SpanContext | None:
    """A client's context from header values of any type; None unless traceparent is valid."""
    text = _text(traceparent, _LONGEST)
    found = _TRACEPARENT.fullmatch(text) if len(text) >= _LENGTH else None
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    if version == "ff" or (version == "00" and rest):
        return None
    numbers = int(trace_id, 16), int(span_id, 16)
    if not all(numbers):
        return None
    return SpanContext(*numbers, _state(tracestate), bool(int(flags, 16) & _SAMPLED), remote=True)


def _state(value: object) -> str:
    text = _text(value, _LONGEST)
    return text if _TRACESTATE.fullmatch(text) else ""


def _text(value: object, longest: int) -> str:
    """A header value as text: clients send text or bytes; anything else, or a too long value, counts as missing."""
    if isinstance(value, bytes | bytearray | memoryview):
        value = bytes(value).decode("latin-1") if len(value) <= longest else ""
    return value if isinstance(value, str) and len(value) <= longest else ""
