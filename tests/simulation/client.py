"""One client: carries out its steps one after the other, and finds another gateway when its connection breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from tests.simulation.channel import Channel
from tests.simulation.history import Connected, History
from tests.simulation.line import GoneError
from tests.simulation.plan import Step
from tests.simulation.wire import Wire

Address = tuple[str, int]
Doing = Callable[["Client", Step], Awaitable[None]]

_PATIENCE = 8.0  # seconds with a gateway that does not answer
_AGAIN = 0.2  # seconds until the next gateway is tried


class Client:
    """`modes` are its channels: name → plain, confirm or tx. They are opened when first used."""

    def __init__(
        self, history: History, name: str, host: str, addresses: Sequence[Address], gateway: int, names: Sequence[str]
    ) -> None:
        self.history = history
        self.name = name
        self.host = host
        self.wire: Wire | None = None
        self.channels: dict[str, Channel] = {}
        self.wanted: dict[tuple[str, str], Step] = {}  # consumers by channel and tag: to be had again
        self.own: dict[str, Step] = {}  # exclusive queues of this connection
        self.doing = ""
        self.sent = 0
        self._addresses = addresses
        self._gateways = names
        self._gateway = gateway
        self._consume: Doing | None = None

    async def run(self, steps: list[Step], table: dict[str, Doing]) -> None:
        """All its steps; what the broker refuses is part of what is seen."""
        self._consume = table["consume"]
        for step in steps:
            if step.get("wait"):
                self.doing = "waiting for its next step"
                await asyncio.sleep(step["wait"])
            self.doing = f"{step}"
            try:
                await table[step["do"]](self, step)
            except GoneError:
                continue
        self.doing = ""

    # -------------------------------------------------------------- connections and channels

    async def channel(self, step: Step) -> Channel:
        """The channel that a step is about, open, with its consumers; raises GoneError if it ends again meanwhile."""
        name = step.get("channel", "a")
        wire = await self.connected()
        channel = self.channels.get(name)
        if channel is None or channel.dead or channel.wire is not wire:
            channel = self.channels[name] = await self._open(wire, step)
            for (on, _), wanted in list(self.wanted.items()):
                if on == name and wanted is not step and self._consume:
                    await self._consume(self, wanted)
        return channel

    async def _open(self, wire: Wire, step: Step) -> Channel:
        return await wire.channel(step.get("mode", "plain"))

    async def connected(self) -> Wire:
        """A connection that stands, as far as one can see."""
        while self.wire is None or self.wire.dead:
            wire = await self._connect()
            if wire:
                self.wire, self.channels, self.own = wire, {}, {}
                break
            await asyncio.sleep(_AGAIN)
        return self.wire

    def _wire(self, connected: Connected) -> Wire:
        return Wire(self.history, connected)

    async def _connect(self) -> Wire | None:
        number = self._gateway % len(self._addresses)
        self._gateway += 1
        history = self.history
        connected = Connected(len(history.connections), self.name, self._gateways[number], self.host, history.tick())
        wire = self._wire(connected)
        try:
            async with asyncio.timeout(_PATIENCE):
                await wire.open(self._addresses[number])
        except (OSError, GoneError):  # TimeoutError is an OSError
            if wire.connected.ending is None:
                wire.connected.ending = wire.connected.ended = history.tick()
                wire.connected.how = "broken"
            history.connections.append(connected)
            return None
        self._gateway -= 1  # stays there as long as it can
        history.connections.append(connected)
        return wire

    def lost(self) -> None:
        """The next connection is to another gateway."""
        self._gateway += 1

    # -------------------------------------------------------------- the end

    async def finish(self, drain: Callable[[Channel, str], Awaitable[None]]) -> None:
        """Waits for what is not confirmed, empties its own queues, and says goodbye."""
        wire = self.wire
        if wire is None or wire.dead:
            return
        for name, channel in self.channels.items():
            while channel.unconfirmed and not channel.dead:
                self.doing = f"waiting for {len(channel.unconfirmed)} confirms on channel {name}"
                wire.changed.clear()
                await wire.changed.wait()
        for queue in self.own:
            self.doing = f"emptying its own queue {queue}"
            try:
                await drain(await wire.channel("plain"), queue)
            except GoneError:
                break
        self.doing = "closing its connection"
        await wire.close()
        self.doing = ""
