"""Answers that a client does not read: a client that requests more of them is read no further, and in the end closed.

Deliveries wait with their sessions while a socket takes no more, so only answers still pile up. Until they are many,
the client is read on: one that writes everything before it reads anything must be able to finish. One that requests
nothing and reads nothing may be busy with its deliveries, for as long as it likes: the memory for it does not grow.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from services.gateway.transport.socket_user import SocketUser

log = structlog.get_logger()

_ANSWERS = 256 << 10  # bytes, beyond those at which the socket took no more
_LOOKS = 4  # checks whether the client reads, within its patience
_DO = "see why it does not read; HOPLINE_UNREAD_TIMEOUT says for how long it may"


class Unread:
    """The unread answers of one connection, from when its socket takes no more until it does again."""

    def __init__(self, connection: SocketUser, transport: asyncio.WriteTransport, patience: float) -> None:
        """`patience` in seconds, for a client that reads nothing."""
        self._connection = connection
        self._transport = transport
        self._every = patience / _LOOKS
        self._size = transport.get_write_buffer_size()
        self._most = self._size + _ANSWERS
        self._too_much = False  # it has so many unread answers that it is read no further
        self._idle = 0  # checks since then that found nothing read
        self._timer = connection.loop.call_later(self._every, self._look)

    def read(self) -> None:
        """Requests of the client were read and answered."""
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
            do=_DO,
        )
        self._connection.cut_off()
