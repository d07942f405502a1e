"""Answers that a client does not read: what asks for more of them is read no further, and in the end it is closed.

Deliveries wait with their sessions while a socket takes no more, so what still grows are answers. Until they are much,
the client is read on: one that writes all before it reads anything must come to its end. One that asks for nothing and
reads nothing is busy with what it has, for as long as it likes: its memory does not grow.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from services.gateway.transport.socket_user import SocketUser

log = structlog.get_logger()

_ANSWERS = 256 << 10  # bytes, beyond those at which the socket took no more
_LOOKS = 4  # at whether the client reads, in the time that it has


class Unread:
    """Of one connection, from when its socket takes no more until it does."""

    def __init__(self, connection: SocketUser, transport: asyncio.WriteTransport, patience: float) -> None:
        """`patience` in seconds, for a client that takes nothing."""
        self._connection = connection
        self._transport = transport
        self._every = patience / _LOOKS
        self._size = transport.get_write_buffer_size()
        self._most = self._size + _ANSWERS
        self._too_much = False  # it has been answered so much that it is read no further
        self._idle = 0  # looks since then that found nothing taken
        self._timer = connection.loop.call_later(self._every, self._look)

    def read(self) -> None:
        """Something of the client was read and answered."""
        if self._transport.get_write_buffer_size() > self._most:
            self._too_much = True
            self._connection.hold(self)

    def stop(self) -> None:
        """The socket takes more, or is gone."""
        self._timer.cancel()
        self._connection.release(self)

    def _look(self) -> None:
        before, self._size = self._size, self._transport.get_write_buffer_size()
        self._idle = self._idle + 1 if self._too_much and self._size >= before else 0
        if self._idle < _LOOKS:
            self._timer = self._connection.loop.call_later(self._every, self._look)
            return
        seconds, name, peer = self._every * _LOOKS, self._connection.name, self._connection.peer
        log.warning(
            "a client that asks on and reads no answers is closed",
            connection=name,
            peer=peer,
            bytes=self._size,
            seconds=seconds,
        )
        self._connection.cut_off()
