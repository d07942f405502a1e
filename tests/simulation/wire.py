"""An AMQP 0-9-1 client's connection: frames by pamqp, one reader task, and what it sees written into a History."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from pamqp import commands, exceptions, frame, heartbeat

from tests.simulation.channel import Channel, GoneError, begin
from tests.simulation.history import Connected, History, Opened
from tests.support.amqp_playbook import CAPABILITIES, HEADER

_BEAT = heartbeat.Heartbeat()
_HEARTBEAT = 4  # seconds; after twice as long in silence a connection is taken for broken


class Wire:
    """A connection. `changed` is set whenever a confirm came or something ended."""

    def __init__(self, history: History, connected: Connected) -> None:
        self.history = history
        self.connected = connected
        self.channels: dict[int, Channel] = {}
        self.changed = asyncio.Event()
        self._free = 1
        self._reader: asyncio.Task[None] | None = None
        self._said: asyncio.Future[Any] | None = None
        self._heard = 0.0
        self._stands = False

    @property
    def dead(self) -> bool:
        return self.connected.ending is not None

    async def open(self, address: tuple[str, int]) -> None:
        """Raises OSError or GoneError when no gateway is there to serve it."""
        self.reader, self._writer = await asyncio.open_connection(*address)
        self._writer.write(HEADER)
        self._reader = asyncio.get_running_loop().create_task(self._read(), name=f"reader {self.connected.number}")
        self._heard = self.history.clock()
        self._beat()
        await self._hear(commands.Connection.Start)
        self.send(
            0, commands.Connection.StartOk({"capabilities": dict(CAPABILITIES)}, "PLAIN", "\0guest\0guest", "en_US")
        )
        tune = await self._hear(commands.Connection.Tune)
        self.send(0, commands.Connection.TuneOk(tune.channel_max, tune.frame_max, _HEARTBEAT))
        self.send(0, commands.Connection.Open(self.connected.host))
        await self._hear(commands.Connection.OpenOk)
        self._stands = True

    async def channel(self, mode: str) -> Channel:
        """A new channel in a mode: plain, confirm, tx. Raises GoneError."""
        if self.dead:
            raise GoneError(self.connected.code, self.connected.text)
        opened = Opened(len(self.history.channels), mode, self.connected)
        self.history.channels.append(opened)
        channel = self.channels[self._free] = Channel(self, self._free, opened)
        self._free += 1
        await channel.call(commands.Channel.Open())
        if mode == "confirm":
            await channel.call(commands.Confirm.Select())
        elif mode == "tx":
            await channel.call(commands.Tx.Select())
            begin(channel)
        return channel

    async def close(self) -> None:
        """Says goodbye and waits for the answer."""
        if self.dead:
            return
        self._ends("clean")
        self._said = asyncio.get_running_loop().create_future()
        self.send(0, commands.Connection.Close(200, "", 0, 0))
        with contextlib.suppress(GoneError):
            await self._said
        self._gone(0, "")

    def abort(self) -> None:
        """Closes the socket, without a close of AMQP."""
        if not self.dead:
            self._ends("aborted")
        self._gone(0, "")

    def send(self, channel: int, *values: Any) -> None:
        if not self._writer.is_closing():
            self._writer.write(b"".join([frame.marshal(value, channel) for value in values]))

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

    def _frames(self, buffer: bytes) -> bytes:
        at = 0
        while len(buffer) - at >= 8:
            size = int.from_bytes(buffer[at + 3 : at + 7], "big") + 8
            if len(buffer) - at < size:
                break
            try:
                _, channel, value = frame.unmarshal(buffer[at : at + size])
            except exceptions.UnmarshalingException as fault:
                self.history.stuck.append(f"unreadable frame: {fault}")
                self.abort()
                return b""
            at += size
            self._take(channel, value)
        return buffer[at:]

    def _take(self, number: int, value: Any) -> None:
        if number:
            if (channel := self.channels.get(number)) and not channel.dead:
                channel.take(value)
        elif isinstance(value, commands.Connection.Close):
            self.send(0, commands.Connection.CloseOk())
            self._broken(value.reply_code, value.reply_text)
        elif isinstance(value, commands.Connection.CloseOk):
            # Everything that was sent before it has been carried out.
            for channel in self.channels.values():
                if not channel.dead:
                    channel.answered(None)
            self._say(value)
        elif not isinstance(value, commands.Connection.Blocked | commands.Connection.Unblocked | heartbeat.Heartbeat):
            self._say(value)

    def _say(self, value: Any) -> None:
        if self._said and not self._said.done():
            self._said.set_result(value)

    def _beat(self) -> None:
        """Says that the client lives, and looks whether the broker does."""
        if self.connected.ended is not None:
            return
        if self.history.clock() - self._heard > 2 * _HEARTBEAT:
            self._broken(0, "")
            return
        if self._stands:
            self.send(0, _BEAT)
        asyncio.get_running_loop().call_later(_HEARTBEAT / 2, self._beat)

    # -------------------------------------------------------------- ends

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
        for channel in self.channels.values():
            channel.end(code, text)
        if self._said and not self._said.done():
            self._said.set_exception(GoneError(code, text))
        self.changed.set()
        if self._reader and self._reader is not asyncio.current_task():
            self._reader.cancel()
        self._writer.transport.abort()
