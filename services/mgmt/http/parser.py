"""h11's parser of what one client sends, with an end to what it does in one turn, and for one body.

h11 makes an event of each chunk of a body, however small, and takes as long for it as for a large one. A body that says
its length has one for each read.
"""

from __future__ import annotations

from typing import Final

import h11
from h11._receivebuffer import ReceiveBuffer  # there is no other place for a look at lines before they are parsed

from services.common.http_lines import BYTES, fault_of

TURN: Final = 64
"""Events of one connection, after which others have their turn: a third of a millisecond of them."""
_CHUNKS: Final = 16 << 10
_EACH: Final = 64
_TOO_SMALL: Final = (
    f"too many small chunks: a body has at most {_CHUNKS}, and one more for each {_EACH} bytes; send it with its length"
)


class Parser(h11.Connection):
    """`is_behind` says that a turn has ended before what was received did."""

    def __init__(self) -> None:
        """On the server's side."""
        super().__init__(h11.SERVER, BYTES)
        self._receive_buffer = _Lines()
        self.fault = ""
        """Why it was refused, by h11 or here."""
        self.is_behind = False
        self._left = TURN
        self._chunks = self._size = 0

    def begin_turn(self) -> None:
        """So many events from now on."""
        self.is_behind, self._left = False, TURN

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """As h11's; NEED_DATA as well where the turn has ended. Raises h11.RemoteProtocolError."""
        if not self._left:
            self.is_behind = True
            return h11.NEED_DATA
        self._left -= 1
        try:
            event = super().next_event()
            self._count(event)
        except h11.RemoteProtocolError as refused:
            self.fault = str(refused).partition(": bytearray")[0]  # a line may hold a password
            raise
        return event

    def _count(self, event: object) -> None:
        if isinstance(event, h11.Request):
            self._chunks = self._size = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._size += len(event.data)
            if self._chunks > _CHUNKS + self._size // _EACH:
                raise _Refused(_TOO_SMALL)


class _Refused(h11.RemoteProtocolError):
    """By this module."""


class _Lines(ReceiveBuffer):
    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Of a head, or behind a body. Raises _Refused."""
        lines = super().maybe_extract_lines()
        if lines and (fault := fault_of(lines)):
            raise _Refused(fault)
        return lines
