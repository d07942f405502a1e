"""A body that comes in several frames, put together as they come."""

from __future__ import annotations

import io

from services.gateway.protocols.dealings import LARGE, Received


class Gathered:
    """What comes whole in one read is copied once. Of what takes several, each leaves at its end what was lent in it.

    Once half of a large body has come, memory is taken for all of it, and the rest is copied to its place at once. Not
    before: a peer may announce much and send little. It gets twice of what it has sent, and of whole ones the rest.
    """

    __slots__ = ("_come", "_own", "_pieces", "_size", "_whole")

    def __init__(self, size: int) -> None:
        self._size = size
        self._come = 0
        self._pieces: list[Received] = []
        self._own = 0  # pieces that are not lent
        self._whole: io.BytesIO | None = None

    def add(self, piece: Received) -> None:
        """What comes next; it may be lent until `keep`. All pieces together are no more than the body."""
        self._come += len(piece)
        if self._whole is not None:
            self._whole.write(piece)
            return
        self._pieces.append(piece)
        if not isinstance(piece, memoryview):
            self.keep()

    def keep(self) -> None:
        """What was lent is taken back now."""
        if LARGE <= self._size <= 2 * self._come and self._pieces:
            self._begin()
        while self._own < len(self._pieces):
            self._pieces[self._own] = bytes(self._pieces[self._own])
            self._own += 1

    def _begin(self) -> None:
        self._whole = whole = io.BytesIO()
        whole.seek(self._size - 1)
        whole.write(b"\0")
        whole.seek(0)
        whole.writelines(self._pieces)
        self._pieces.clear()

    def take(self) -> bytes:
        """The whole body; nothing is copied where its memory was taken before."""
        if self._whole is not None:
            return self._whole.getvalue()
        whole = b"".join(self._pieces)
        self._pieces.clear()
        return whole
