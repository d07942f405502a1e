"""A client's connection (parts 2 and 5): SASL, open, frames to the session of their channel, close."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from services.common.errors import BrokerError
from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0.composite import Composite
from services.common.message.amqp_1_0.decode import decode_at
from services.gateway.protocols.amqp_1_0 import frames, security
from services.gateway.protocols.amqp_1_0.connection import AMQP_HEADER, SASL_HEADER
from services.gateway.protocols.amqp_1_0.performatives import Close, Open
from tests.simulation.amqp_1_0.messages import reason
from tests.simulation.amqp_1_0.session import MODE, Session
from tests.simulation.history import Connected, History, Opened
from tests.simulation.line import HEARTBEAT, GoneError, Line

_REFUSED: Final = 403


class Wire(Line):
    """A connection of 1.0. `largest` is how many bytes a frame may have that is sent, `takes` one that comes."""

    BEAT: ClassVar[bytes] = frames.BEAT

    def __init__(self, history: History, connected: Connected, takes: int) -> None:
        super().__init__(history, connected)
        self.sessions: dict[int, Session] = {}
        self.largest = frames.MIN_MAX_FRAME_SIZE
        self._takes = takes
        self._free = 0

    async def open(self, address: tuple[str, int]) -> None:
        """Raises OSError or GoneError when no gateway is there to serve it."""
        init = security.Init("PLAIN", b"\0guest\0guest")
        await self._connect(address, SASL_HEADER + frames.frame(frames.SASL, 0, composite.write(init)))
        outcome = await self._hear(security.Outcome)
        if outcome.code != security.OK:
            raise GoneError(_REFUSED, "sasl")
        self.write(AMQP_HEADER)
        # All clients are one application, which those of 0-9-1 call by their user: they may have a queue together.
        name, host = "guest", f"vhost:{self.connected.host}"
        self.send(0, Open(name, host, max_frame_size=self._takes, idle_time_out=HEARTBEAT * 1000))
        opened = await self._hear(Open)
        self.largest = min(opened.max_frame_size, 1 << 17)
        self._stands = True

    async def session(self, *, second: bool, window: int) -> Session:
        """A new one. Raises GoneError."""
        if self.dead:
            raise GoneError(self.connected.code, self.connected.text)
        opened = Opened(len(self.history.channels), MODE, self.connected, limited=True)
        self.history.channels.append(opened)
        session = Session(self, self._free, opened, second=second, window=window)
        self.sessions[self._free] = session
        self._free += 1
        await session.open()
        return session

    async def close(self) -> None:
        """Says goodbye and waits for the answer."""
        if self.dead:
            return
        self._ends("clean")
        self._said = asyncio.get_running_loop().create_future()
        self.send(0, Close())
        with contextlib.suppress(GoneError):
            await self._said
        self._gone(0, "")

    def send(self, channel: int, what: Composite, payload: bytes = b"") -> None:
        self.write(frames.frame(frames.AMQP, channel, composite.write(what) + payload))

    # -------------------------------------------------------------- reading

    def _parts(self) -> Iterable[Session]:
        return self.sessions.values()

    def _frames(self, buffer: bytes) -> bytes:
        at = 0
        while len(buffer) - at >= frames.HEAD.size:
            if buffer.startswith(b"AMQP", at):
                at += len(AMQP_HEADER)
                continue
            size, offset, _, channel = frames.HEAD.unpack_from(buffer, at)
            if len(buffer) - at < size:
                break
            body, at = buffer[at + 4 * offset : at + size], at + size
            if not self._frame(channel, size, body):
                return b""
        for session in self.sessions.values():
            session.caught_up()
        return buffer[at:]

    def _frame(self, channel: int, size: int, body: bytes) -> bool:
        """Whether it could be read."""
        if size > self._takes:
            self.history.breaches.append(f"a frame of {size} bytes, of {self._takes}")
        try:
            if body:
                described, end = decode_at(body, 0)
                self._take(channel, composite.of(described), body[end:])
        except BrokerError as fault:
            self.history.breaches.append(f"unreadable frame: {fault}")
            self.abort()
            return False
        return True

    def _take(self, channel: int, what: Any, payload: bytes) -> None:
        if isinstance(what, Close):
            self._closed(what)
        elif isinstance(what, security.Mechanisms):
            return
        elif isinstance(what, security.Outcome | Open):
            self._say(what)
        elif (session := self.sessions.get(channel)) and not session.dead:
            session.take(what, payload)

    def _closed(self, close: Close) -> None:
        """The broker's answer to ours, or its own."""
        code, text = reason(close.error)
        if not self.dead or code:
            self.send(0, Close())
            self._broken(code, text)
            return
        for session in self.sessions.values():
            if not session.dead:
                session.carried_out()
        self._say(close)
