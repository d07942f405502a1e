from __future__ import annotations

import asyncio
import json

import pytest

from services.supervisor.output import forward, frame_for


async def _forwarded(data: list[bytes], style: str, capfd: pytest.CaptureFixture[str]) -> str:
    source = asyncio.StreamReader()
    for part in data:
        source.feed_data(part)
    source.feed_eof()
    await forward(source, frame_for(style, "store"))
    return capfd.readouterr().err


async def test_lines_keep_their_form(capfd: pytest.CaptureFixture[str]) -> None:
    """However the bytes are cut, each line comes once, behind the name; an unfinished last line too."""
    assert await _forwarded([b"on", b"e\n\ntwo\nthr", b"ee"], "console", capfd) == (
        "store    | one\nstore    | \nstore    | two\nstore    | three\n"
    )


@pytest.mark.parametrize(("data", "last"), [([], ""), ([b"a\nb\n"], "b"), ([b"a\nb"], "b"), ([b"a\n", b"b\n"], "b")])
async def test_last_words(data: list[bytes], last: str) -> None:
    """The last line is remembered, finished or not."""
    source = asyncio.StreamReader()
    for part in data:
        source.feed_data(part)
    source.feed_eof()
    assert await forward(source, frame_for("console", "store")) == last


async def test_json_stays_json(capfd: pytest.CaptureFixture[str]) -> None:
    """In JSON style log lines pass unchanged, and a traceback's lines become log lines."""
    first, second = (await _forwarded([b'{"event":"x"}\nTraceback\n'], "json", capfd)).splitlines()
    assert first == '{"event":"x"}'
    assert json.loads(second) == {"service": "store", "level": "info", "event": "Traceback"}


async def test_endless_line(capfd: pytest.CaptureFixture[str]) -> None:
    """A line without an end does not grow in memory: it comes in pieces."""
    err = await _forwarded([b"x" * 1_000_000], "console", capfd)
    assert err.count("x") == 1_000_000
    assert err.count("\n") > 1
