"""The settings of the two ends of a connection (RFC 9113 section 6.5.2), as a table."""

from __future__ import annotations

import enum
from typing import NamedTuple

from services.common.http2.errors import ConnectionFault, ErrorCode

LARGEST_WINDOW = (1 << 31) - 1


class Setting(enum.IntEnum):
    """Identifiers. Unknown ones are ignored."""

    HEADER_TABLE_SIZE = 0x1
    ENABLE_PUSH = 0x2
    MAX_CONCURRENT_STREAMS = 0x3
    INITIAL_WINDOW_SIZE = 0x4
    MAX_FRAME_SIZE = 0x5
    MAX_HEADER_LIST_SIZE = 0x6


class _Rule(NamedTuple):
    initial: int
    lowest: int
    highest: int
    code: ErrorCode  # for a value out of range


_ANY = (1 << 32) - 1
_RULES = {
    Setting.HEADER_TABLE_SIZE: _Rule(4096, 0, _ANY, ErrorCode.PROTOCOL_ERROR),
    Setting.ENABLE_PUSH: _Rule(1, 0, 1, ErrorCode.PROTOCOL_ERROR),
    Setting.MAX_CONCURRENT_STREAMS: _Rule(_ANY, 0, _ANY, ErrorCode.PROTOCOL_ERROR),
    Setting.INITIAL_WINDOW_SIZE: _Rule(65_535, 0, LARGEST_WINDOW, ErrorCode.FLOW_CONTROL_ERROR),
    Setting.MAX_FRAME_SIZE: _Rule(16_384, 16_384, (1 << 24) - 1, ErrorCode.PROTOCOL_ERROR),
    Setting.MAX_HEADER_LIST_SIZE: _Rule(_ANY, 0, _ANY, ErrorCode.PROTOCOL_ERROR),
}

OURS = {
    Setting.ENABLE_PUSH: 0,
    Setting.MAX_CONCURRENT_STREAMS: 100,
    # So many octets of a stream may be on their way to us. We read at once, so this only bounds what the wire holds.
    Setting.INITIAL_WINDOW_SIZE: 8 << 20,
    # Large enough for nearly all messages: one in several frames has to be assembled.
    Setting.MAX_FRAME_SIZE: 4 << 20,
    Setting.MAX_HEADER_LIST_SIZE: 16 << 10,
}
CONNECTION_WINDOW = 32 << 20  # ours for all streams together


def initial() -> dict[int, int]:
    """The values that hold until the peer sends others."""
    return {setting: rule.initial for setting, rule in _RULES.items()}


def check(identifier: int, value: int, *, of_server: bool) -> bool:
    """Whether the peer's setting is known. Raises ConnectionFault for a value that it may not have."""
    if identifier not in _RULES:
        return False
    rule = _RULES[Setting(identifier)]
    highest = 0 if of_server and identifier == Setting.ENABLE_PUSH else rule.highest
    if not rule.lowest <= value <= highest:
        raise ConnectionFault(rule.code, f"{Setting(identifier).name} cannot be {value}")
    return True
