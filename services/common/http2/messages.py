"""Messages in a stream: a flag for compression, the length in four octets, then the message.

This is "Length-Prefixed-Message" of gRPC's PROTOCOL-HTTP2.md. DATA frames cut the sequence of messages anywhere.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

from services.common.http2.errors import ErrorCode

_PREFIX = struct.Struct(">BL")
PREFIX_SIZE = _PREFIX.size

ToSend: TypeAlias = bytes | Sequence[bytes]
"""A message, whole or in parts."""


class MessageFault(Exception):
    """The peer sent something that we cannot take as a message; `code` and `text` tell why."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class MessageReader:
    """Assembles the messages of one stream."""

    def __init__(self, largest: int) -> None:
        """`largest` is the limit for a message, in octets."""
        self._largest = largest
        self._rest = bytearray()
        self._wanted = PREFIX_SIZE  # octets until the next prefix or message is complete

    @property
    def is_between_messages(self) -> bool:
        """Whether no message has come in part."""
        return not self._rest

    def limit(self, largest: int) -> None:
        """From now on, also for the message that is coming in, `largest` octets are the limit."""
        self._largest = largest
        self._wanted = PREFIX_SIZE  # the length of the message is checked again

    def sole(self, data: memoryview) -> bytes | None:
        """The message that `data` is, whole; None where it is anything else, and has to be fed."""
        if self._rest or len(data) < PREFIX_SIZE:
            return None
        compressed, length = _PREFIX.unpack_from(data)
        if compressed or length != len(data) - PREFIX_SIZE or length > self._largest:
            return None
        return bytes(data[PREFIX_SIZE:])

    def feed(self, data: bytes | memoryview) -> list[bytes]:
        """The messages that `data` completes. Raises MessageFault."""
        if not self._rest and len(data) >= PREFIX_SIZE and len(data) == PREFIX_SIZE + self._length(data, 0):
            return [bytes(data[PREFIX_SIZE:])]  # nearly always: a message is a frame
        self._rest += data
        return self._take() if len(self._rest) >= self._wanted else []

    def _take(self) -> list[bytes]:
        messages: list[bytes] = []
        rest, at = self._rest, 0
        with memoryview(rest) as view:
            while len(rest) - at >= PREFIX_SIZE:
                end = at + PREFIX_SIZE + self._length(rest, at)
                self._wanted = end - at
                if end > len(rest):
                    break
                messages.append(bytes(view[at + PREFIX_SIZE : end]))
                at = end
                self._wanted = PREFIX_SIZE
        del rest[:at]
        return messages

    def _length(self, data: bytes | bytearray | memoryview, at: int) -> int:
        compressed, length = _PREFIX.unpack_from(data, at)
        if compressed:
            raise MessageFault(ErrorCode.CANCEL, "a compressed message, which nobody agreed on")
        if length > self._largest:
            # Of the codes the one that gRPC calls RESOURCE_EXHAUSTED (PROTOCOL-HTTP2.md, "Errors").
            text = f"a message of {length} octets; {self._largest} are taken"
            raise MessageFault(ErrorCode.ENHANCE_YOUR_CALM, text)
        return int(length)


def prefix(size: int) -> bytes:
    """The prefix of a message of so many octets."""
    return _PREFIX.pack(0, size)
