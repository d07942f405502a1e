"""An AMQP 0-9-1 client's connection: frames by pamqp, and what it sees written into a History."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any, ClassVar

from pamqp import commands, exceptions, frame, heartbeat

from tests.simulation.channel import Channel, begin
from tests.simulation.history import Connected, History, Opened
from tests.simulation.line import HEARTBEAT, GoneError, Line
from tests.support.amqp_playbook import CAPABILITIES, HEADER


class Wire(Line):
    """A connection of 0-9-1."""

    BEAT: ClassVar[bytes] = frame.marshal(heartbeat.Heartbeat(), 0)

    def __init__(self, history: History, connected: Connected) -> None:
        super().__init__(history, connected)
        self.channels: dict[int, Channel] = {}
        self._free = 1

    async def open(self, address: tuple[str, int]) -> None:
        """Raises OSError or GoneError when no gateway is there to serve it."""
        await self._connect(address, HEADER)
        await self._hear(commands.Connection.Start)
        self.send(
            0, commands.Connection.StartOk({"capabilities": dict(CAPABILITIES)}, "PLAIN", "\0guest\0guest", "en_US")
        )
        tune = await self._hear(commands.Connection.Tune)
        self.send(0, commands.Connection.TuneOk(tune.channel_max, tune.frame_max, HEARTBEAT))
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

    def send(self, channel: int, *values: Any) -> None:
        self.write(b"".join([frame.marshal(value, channel) for value in values]))

    # -------------------------------------------------------------- reading

    def _parts(self) -> Iterable[Channel]:
        return self.channels.values()

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
