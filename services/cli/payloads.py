"""What was captured of a message, as lines: properties, then the body as text, or as bytes where it is none."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence

from rich.text import Text

from services.common.capture.text import text_of
from services.common.printable import printable, printable_json
from services.common.trace import Payload

_INDENT = " " * 12
_BYTES_OF_LINE = 16
_MOST_LINES = 64  # of bytes that are no text; --json has all


def payload_lines(payloads: Sequence[Payload]) -> Iterator[Text]:
    """Each with its head, its properties and its body."""
    for payload in payloads:
        yield Text(f"{_INDENT}{_head(payload)}", "bold")
        for name, value in payload.properties.items():
            # A text with line ends would be lines of its own, which look like ours.
            shown = printable(value) if isinstance(value, str) else _as_json(value)
            yield Text(f"{_INDENT}{printable(name)}: {shown}", "dim")
        # Of the bytes: that a terminal may have them was seen to line by line.
        lines = body_lines(base64.b64decode(payload.body), whole=payload.kept == payload.size)
        yield from (Text(f"{_INDENT}{line}") for line in lines)


def _as_json(value: object) -> str:
    return printable_json(json.dumps(value, ensure_ascii=False))


def _head(payload: Payload) -> str:
    whole = f"{payload.size} bytes" if payload.kept == payload.size else f"{payload.kept} of {payload.size} bytes"
    place = f" from queue '{payload.queue}'" if payload.queue else ""
    return f"{payload.stage}{place}, {whole}, captured by rule '{payload.rule}'"


def body_lines(body: bytes, *, whole: bool) -> Iterator[str]:
    """Text as it is, of which a terminal obeys nothing; bytes where it is none."""
    text = text_of(body, whole=whole)
    return _as_bytes(body) if text is None else map(printable, text.removesuffix("\n").split("\n"))


def _as_bytes(body: bytes) -> Iterator[str]:
    most = _MOST_LINES * _BYTES_OF_LINE
    for start in range(0, min(len(body), most), _BYTES_OF_LINE):
        some = body[start : start + _BYTES_OF_LINE]
        text = "".join(chr(each) if 32 <= each < 127 else "." for each in some)
        yield f"{start:06x}  {some.hex(' '):<{3 * _BYTES_OF_LINE - 1}}  {text}"
    if len(body) > most:
        yield f"… {len(body) - most} more bytes: --json has them, in base64"
