from __future__ import annotations

import io
import json
import subprocess
import sys

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


_LIBRARY = """
import logging
from services.common import log
log.configure("gateway", "json", "info")
try:
    raise OSError("no room")
except OSError:
    logging.getLogger("a.library").exception("failed for %s", "x\\n\\x1b")
logging.getLogger("a.library").info("of no interest")
"""


def test_lines_of_libraries() -> None:
    """Are JSON like our own, with what was raised; those that nobody wants to have are not there."""
    ran = subprocess.run([sys.executable, "-c", _LIBRARY], check=True, capture_output=True, text=True)
    (line,) = map(json.loads, ran.stderr.splitlines())
    assert (line["event"], line["level"], line["logger"]) == ("failed for x\n\x1b", "error", "a.library")
    assert (line["service"], line["timestamp"][-1]) == ("gateway", "Z")
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("OSError: no room")
