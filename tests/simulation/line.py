"""What connections of all protocols have in common: a socket, one reader task, heartbeats, and how it ends."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

from tests.simulation.history import Connected, History

HEARTBEAT = 4  # seconds; after twice as long in silence a connection is taken for broken


class GoneError(Exception):
    """The channel, or the whole connection, ended before an answer came. `code` is 0 when no reason came."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code} {text}")
        self.code = code
        self.text = text


class Part(Protocol):
    """A channel, or what stands for it."""

    def end(self, code: int, text: str) -> None: ...


class Line(ABC):
    """A connection. `changed` is set whenever a confirm came or something ended."""

    BEAT: ClassVar[bytes]

    def __init__(self, history: History, connected: Connected) -> None:
        self.history = history
        self.connected = connected
        self.changed = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self._said: asyncio.Future[Any] | None = None
        self._heard = 0.0
        self._stands = False

    @property
    def dead(self) -> bool:
        return self.connected.ending is not None

    async def _connect(self, address: tuple[str, int], opening: bytes) -> None:
        self.reader, self._writer = await asyncio.open_connection(*address)
        self._writer.write(opening)
        self._reader = asyncio.get_running_loop().create_task(self._read(), name=f"reader {self.connected.number}")
        self._heard = self.history.clock()
        self._beat()

    def abort(self) -> None:
        """Closes the socket, without a close of AMQP."""
        if not self.dead:
            self._ends("aborted")
        self._gone(0, "")

    def write(self, data: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(data)

    # -------------------------------------------------------------- reading

    async def _hear(self, kind: type[Any]) -> Any:
        self._said = asyncio.get_running_loop().create_future()
        value = await self._said
        assert isinstance(value, kind), value
        return value

    async def _read(self) -> None:
        buffer = b""
        try:
            while data := await self.reader.read(1 << 16):
                self._heard = self.history.clock()
                buffer = self._frames(buffer + data)
        except (ConnectionError, OSError):
            pass
        self._broken(0, "")

    @abstractmethod
    def _frames(self, buffer: bytes) -> bytes:
        """Takes whole frames; gives what is left."""

    def _say(self, value: Any) -> None:
        if self._said and not self._said.done():
            self._said.set_result(value)

    def _beat(self) -> None:
        """Says that the client lives, and looks whether the broker does."""
        if self.connected.ended is not None:
            return
        if self.history.clock() - self._heard > 2 * HEARTBEAT:
            self._broken(0, "")
            return
        if self._stands:
            self.write(self.BEAT)
        asyncio.get_running_loop().call_later(HEARTBEAT / 2, self._beat)

    # -------------------------------------------------------------- ends

    @abstractmethod
    def _parts(self) -> Iterable[Part]:
        """Its channels."""

    def _ends(self, how: str, code: int = 0, text: str = "") -> None:
        connected = self.connected
        connected.ending, connected.how = self.history.tick(), how
        connected.code, connected.text = code, text

    def _broken(self, code: int, text: str) -> None:
        if not self.dead:
            self._ends("refused" if code else "broken", code, text)
        self._gone(code, text)

    def _gone(self, code: int, text: str) -> None:
        if self.connected.ended is not None:
            return
        self.connected.ended = self.history.tick()
        for part in self._parts():
            part.end(code, text)
        if self._said and not self._said.done():
            self._said.set_exception(GoneError(code, text))
        self.changed.set()
        if self._reader and self._reader is not asyncio.current_task():
            self._reader.cancel()
        self._writer.transport.abort()
