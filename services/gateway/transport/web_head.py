"""The head of the request that a WebSocket begins with, looked at before it is parsed.

The parser takes the square of spaces in a row, and of the length of a host's name: a head of 64 KiB took a gateway
eleven seconds, and every peer can send one.
"""

from __future__ import annotations

import re
from typing import Final

from services.common.http_lines import fault_of

MOST: Final = 16 << 10
"""Bytes of a head; pages send a few hundred, and their cookies."""
_END: Final = re.compile(rb"\n\r?\n")
_END_SIZE: Final = 3


class HeadRefused(Exception):
    """Why it is not parsed, in words for its sender."""


class Head:
    """Waits for the end of the head; what follows it is passed through."""

    def __init__(self) -> None:
        self._begun = bytearray()
        self._is_whole = False

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """The head when it is whole, and what is behind it; raises HeadRefused."""
        if self._is_whole:
            return b"", data
        begin = max(0, len(self._begun) - _END_SIZE)
        self._begun += data
        found = _END.search(self._begun, begin, MOST)
        if found is None and len(self._begun) < MOST:
            return b"", b""
        if found is None:
            raise HeadRefused(f"a request with a head of more than {MOST} bytes")
        return self._end_at(found.end())

    def _end_at(self, end: int) -> tuple[bytes, bytes]:
        begun, self._begun, self._is_whole = bytes(self._begun), bytearray(), True
        if fault := fault_of(begun[:end].split(b"\n")):
            raise HeadRefused(fault)
        return begun[:end], begun[end:]
