from __future__ import annotations

import io

import pytest
import structlog

from services.common import log


@pytest.mark.parametrize("style", ["console", "json"])
def test_hostile_names(style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With any names that clients choose, a log line in a terminal is one line, and sets no colour and no title."""
    before = structlog.get_config()
    written = io.StringIO()
    monkeypatch.setattr(log.sys, "stderr", written)
    try:
        log.configure("gateway", style, "info")
        structlog.get_logger().info("connection ended", reason="a\x1b]0;x\x07\x9b2J", peer="\u202ex y\n")
    finally:
        structlog.configure(**before)
        structlog.contextvars.clear_contextvars()
    (line,) = written.getvalue().splitlines()
    assert line.isprintable()
    assert "1b]0;x" in line


@pytest.mark.parametrize("style", ["console", "json"])
def test_a_name_as_long_as_a_frame(style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fills no disk with the lines that refuse it: its beginning is there, and how long it is."""
    before = structlog.get_config()
    written = io.StringIO()
    monkeypatch.setattr(log.sys, "stderr", written)
    try:
        log.configure("gateway", style, "info")
        structlog.get_logger().info("request refused", error="x" * 60_000, peer="::1")
    finally:
        structlog.configure(**before)
        structlog.contextvars.clear_contextvars()
    assert len(written.getvalue()) < 3000
    assert "60000 characters" in written.getvalue()


def test_a_traceback_keeps_its_lines() -> None:
    """What is escaped in it is no line end."""
    line = log.show_plainly(None, "error", {"event": "x", "exception": "Traceback\n  \x1b", "count": 3})
    assert line == {"event": "x", "exception": "Traceback\n  \\x1b", "count": 3}
