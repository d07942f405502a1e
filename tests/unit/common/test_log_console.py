"""Lines without colours, beside structlog's own renderer."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from services.common.log_console import PlainConsole


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"peer": "127.0.0.1:5", "connection": "3.1", "user": "guest", "virtual_host": "/"},
        {"reason": "end of stream", "text": "a=b", "quoted": "it's", "empty": "", "number": 7, "names": ["a"]},
        {"event": "an event that is longer than the column that it has", "none": None},
        {"level": "exception", "exception": "Traceback\n  here"},
        {"event": 7, "a": " "},
        {"logger": "asyncio", "b": 1},
        {"stack": "Stack\n  here", "exception": "Traceback"},
        {"timestamp": None},
        {"tab": "a\tb", "last": "x "},
    ],
)
def test_as_structlog_writes_it(more: dict[str, Any]) -> None:
    """Whatever is said in it."""
    line = {"timestamp": "2026-11-28T21:52:55.9Z", "level": "info", "event": "connection opened", **more}
    assert PlainConsole()(None, "info", dict(line)) == structlog.dev.ConsoleRenderer(colors=False)(None, "info", line)
