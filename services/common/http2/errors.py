"""What can go wrong on an HTTP/2 connection, and how much ends with it (RFC 9113 section 7)."""

from __future__ import annotations

import enum


class ErrorCode(enum.IntEnum):
    """The codes that RST_STREAM and GOAWAY carry."""

    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    INTERNAL_ERROR = 0x2
    FLOW_CONTROL_ERROR = 0x3
    SETTINGS_TIMEOUT = 0x4
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    COMPRESSION_ERROR = 0x9
    CONNECT_ERROR = 0xA
    ENHANCE_YOUR_CALM = 0xB
    INADEQUATE_SECURITY = 0xC
    HTTP_1_1_REQUIRED = 0xD


class ConnectionFault(Exception):
    """The peer broke the protocol so that no stream can go on (section 5.4.1); `text` is for its log and ours."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(f"{text} ({code.name})")
        self.code = code
        self.text = text


class StreamFault(Exception):
    """One stream cannot go on; the others can (section 5.4.2)."""

    def __init__(self, stream: int, code: ErrorCode, text: str) -> None:
        super().__init__(f"{text} ({code.name})")
        self.stream = stream
        self.code = code
        self.text = text
