from __future__ import annotations

import base64
from io import StringIO

import pytest
from rich.console import Console

from services.cli.capture_shown import show_rules
from services.cli.payloads import payload_lines
from services.common.capture.cost import Captured, Cost
from services.common.capture.rules import Rule
from services.common.trace import Payload


def _payload(body: bytes, **facts: object) -> Payload:
    told = {
        "time_us": 1,
        "stage": "sent",
        "instance": "g",
        "queue": "q",
        "consumer": "",
        "connection": "",
        "client": "",
    }
    kept = {"kept": len(body), "body": base64.b64encode(body).decode(), "text": None}
    return Payload.model_validate({**told, "rule": "r", "properties": {}, "size": len(body), **kept, **facts})


def _shown(payload: Payload) -> list[str]:
    return [str(line).strip() for line in payload_lines([payload])]


def test_text() -> None:
    """Lines of a body stay lines, those of a property are one; what a terminal would obey is shown, wherever it is."""
    payload = _payload(b"one\x1b[31m\ntwo\n", properties={"type": "a\x1b\nended", "headers": {"h": "\u202e"}}, size=99)
    assert _shown(payload) == [
        "sent from queue 'q', 13 of 99 bytes, captured by rule 'r'",
        "type: a\\x1b\\nended",
        'headers: {"h": "\\u202e"}',
        "one\\x1b[31m",
        "two",
    ]


def test_bytes() -> None:
    """What is no text is shown in hexadecimal, the beginning of it."""
    lines = _shown(_payload(bytes(range(250, 256)) + b"AB"))
    assert lines[1:] == ["000000  fa fb fc fd fe ff 41 42                          ......AB"]
    many = _shown(_payload(b"\xff" * 10_000))
    assert (len(many), many[-1]) == (66, "… 8976 more bytes: --json has them, in base64")


@pytest.mark.parametrize(("ended", "until"), [(True, "ended"), (False, "1970-01-01")])
def test_rules_with_their_cost(ended: bool, until: str) -> None:
    """Each rule is shown with how long it runs, how much it has kept, and what it left out."""
    rule = Rule(name="orders", made_ms=86_400_000 // 2, queue="work", limit=2 << 20)
    told = Captured(rule=rule, cost=Cost(messages=12, bytes=1 << 20, left_out=7), ended=ended)
    console = Console(file=StringIO(), width=200)
    show_rules([told], console)
    [_, line] = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert line.startswith("orders")
    for part in (until, "2 MiB", " 12 ", "1 MiB", " 7 ", "queue=work"):
        assert part in line
