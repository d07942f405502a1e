"""Passes on the output of children line by line, each line with the child's name."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable

Frame = Callable[[bytes], bytes]

_CHUNK = 1 << 16


def frame_for(style: str, name: str) -> Frame:
    """How a line of `name` is shown: behind its name on a console; in JSON as it is, since log lines say `service`."""
    if style == "json":
        return lambda line: line if line.startswith(b"{") else _as_json(name, line)
    prefix = f"{name:<8} | ".encode()
    return lambda line: prefix + line


async def forward(source: asyncio.StreamReader, frame: Frame) -> str:
    """Writes every line from `source` to stderr, framed, until it ends; gives the last one."""
    last = rest = b""
    while chunk := await source.read(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _CHUNK:
            lines, rest = [*lines, rest], b""
        _write(lines, frame)
        last = lines[-1] if lines else last
    if rest:
        _write([rest], frame)
    return (rest or last).decode(errors="replace")


def _write(lines: list[bytes], frame: Frame) -> None:
    sys.stderr.buffer.write(b"".join(frame(line) + b"\n" for line in lines))
    sys.stderr.buffer.flush()


def _as_json(name: str, line: bytes) -> bytes:
    """A line that is no log line, such as one of a traceback, as a log line."""
    return json.dumps({"service": name, "level": "info", "event": line.decode(errors="replace")}).encode()
