"""NATS as far as the broker uses it: a server in a process of its own, and clients over the in-memory network.

What JetStream has acknowledged is on disk: it outlives the server's process.
"""

from __future__ import annotations

import asyncio
import itertools
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import nats.errors
from nats.js.api import StreamConfig, StreamInfo, StreamState
from nats.js.errors import NotFoundError

from tests.simulation.world.addresses import Network
from tests.simulation.world.network import Connection, Reset
from tests.simulation.world.processes import PROCESS, Process

PORT = 4222


@dataclass(slots=True)
class Kept:
    """One message of the stream."""

    number: int
    subject: str
    data: bytes


@dataclass(slots=True)
class Disk:
    """What JetStream keeps, and what it ever took."""

    told: list[Kept] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    waiting: dict[int, Kept] = field(default_factory=dict)  # not acknowledged
    has_stream: bool = False


class NatsListener:
    """The server of one process."""

    def __init__(self, network: Network, disk: Disk) -> None:
        self.process = PROCESS.get()
        self.network = network
        self.disk = disk
        self.given: set[int] = set()  # to the one consumer there is
        self.asking: list[tuple[_ServerEnd, int, int]] = []
        network.listen(PORT, self)

    def do(self, end: _ServerEnd, number: int, name: str, arguments: tuple[Any, ...]) -> None:
        answer = getattr(self, f"_{name}")(*arguments) if name != "fetch" else self._fetch(end, number, *arguments)
        if answer is not None:
            end.send(number, answer)
        self._satisfy()

    def _flush(self) -> str:
        return "pong"

    def _publish(self, subject: str, data: bytes, message_id: str) -> Any:
        disk = self.disk
        if not disk.has_stream:
            return nats.errors.NoRespondersError()
        if message_id not in disk.ids or not message_id:
            kept = Kept(len(disk.told) + 1, subject, data)
            disk.told.append(kept)
            disk.waiting[kept.number] = kept
            disk.ids[message_id] = kept.number
        return "stored"

    def _add(self) -> str:
        self.disk.has_stream = True
        return "done"

    def _update(self) -> Any:
        found = self.disk.has_stream
        return "done" if found else NotFoundError(code=404, err_code=10059, description="stream not found")

    def _last(self) -> int:
        return len(self.disk.told)

    def _consumer(self) -> str:
        self.given.clear()
        self.asking.clear()
        return "done"

    def _fetch(self, end: _ServerEnd, number: int, most: int) -> None:
        self.asking.append((end, number, most))

    def _acknowledge(self, number: int) -> None:
        self.disk.waiting.pop(number, None)

    def _satisfy(self) -> None:
        while self.asking:
            end, number, most = self.asking[0]
            fresh = (kept for kept in self.disk.waiting.values() if kept.number not in self.given)
            found = list(itertools.islice(fresh, most))
            if not found and not end.lost:
                return
            del self.asking[0]
            if not end.lost:
                self.given.update(kept.number for kept in found)
                end.send(number, found)


class _Side:
    """What both ends have in common."""

    def __init__(self, network: Network, process: Process) -> None:
        self.process = process
        self.connection: Connection = None  # type: ignore[assignment]  # set as soon as both ends are there
        self.lost = False
        self.network = network
        process.on_death[self.die] = None

    def send(self, *item: Any) -> None:
        if not self.lost:
            self.connection.send(self, item)

    def arrived(self, item: Any) -> None:
        if self.lost:
            if item is not Reset:
                self.connection.send(self, Reset)
        elif item is Reset:
            self.broken(ConnectionResetError(104, "connection reset by peer"))
        else:
            self.take(*item)

    def take(self, *item: Any) -> None:
        raise NotImplementedError

    def broken(self, _failure: Exception) -> None:
        if not self.lost:
            self.lost = True
            self.connection.ended(self)
            self.process.on_death.pop(self.die, None)

    def close(self) -> None:
        if not self.lost:
            self.connection.send(self, Reset)
            self.broken(ConnectionResetError())

    def die(self) -> None:
        self.lost = True
        self.connection.died(self, self.network.random, self.network.unheard(self.process))


class _ServerEnd(_Side):
    def __init__(self, listener: NatsListener) -> None:
        super().__init__(listener.network, listener.process)
        self._listener = listener

    def take(self, *item: Any) -> None:
        number, name, arguments = item
        for argument in arguments:
            if isinstance(argument, bytes):
                self.network.loop.note(self.process.number, zlib.crc32(argument))
        self._listener.do(self, number, name, arguments)


class _ClientEnd(_Side):
    def __init__(self, network: Network, process: Process, on_end: Callable[[], None]) -> None:
        super().__init__(network, process)
        self.answers: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._on_end = on_end

    def ask(self, name: str, *arguments: Any) -> asyncio.Future[Any]:
        number = next(self._numbers)
        answer = self.answers[number] = self.network.loop.create_future()
        if self.lost:
            answer.set_exception(nats.errors.ConnectionClosedError())
        self.send(number, name, arguments)
        return answer

    def tell(self, name: str, *arguments: Any) -> None:
        self.send(0, name, arguments)

    def take(self, *item: Any) -> None:
        number, result = item
        answer = self.answers.pop(number, None)
        if answer is None or answer.done():
            return
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)

    def broken(self, failure: Exception) -> None:
        if self.lost:
            return
        super().broken(failure)
        self._on_end()


class Client:
    """As nats.aio.client.Client."""

    max_payload = 1 << 20

    def __init__(self, network: Network) -> None:
        self._network = network
        self._end: _ClientEnd | None = None
        self._closed_cb: Any = None

    async def connect(self, address: str, *, closed_cb: Any = None, **_options: Any) -> None:
        """Tries until it is cancelled, as the options of NatsLink say."""
        host = address.rpartition("/")[2].rpartition(":")[0]
        self._closed_cb = closed_cb
        while self._end is None:
            try:
                link, listener = await self._network.reach(host, PORT)
            except OSError:
                await asyncio.sleep(0.2)
                continue
            near = _ClientEnd(self._network, PROCESS.get(), self._ended)
            far = _ServerEnd(listener)
            near.connection = far.connection = Connection(self._network.loop, link, (near, far))
            self._end = near
            if far.process.dead:
                far.die()

    def _ended(self) -> None:
        if self._closed_cb:
            self._network.loop.create_task(self._closed_cb())

    @property
    def is_connected(self) -> bool:
        return self._end is not None and not self._end.lost

    def connected(self) -> _ClientEnd:
        """Raises ConnectionClosedError."""
        if self._end is None or self._end.lost:
            raise nats.errors.ConnectionClosedError
        return self._end

    async def publish(self, _subject: str, _payload: bytes) -> None:
        """Has no subscriber: the server would drop it."""
        self.connected()

    async def flush(self, timeout: float = 10) -> None:  # noqa: ASYNC109 - as nats-py has it
        await _within(self.connected().ask("flush"), timeout)

    def jetstream(self, timeout: float = 5) -> JetStream:
        return JetStream(self, timeout)

    async def close(self) -> None:
        if self._end:
            self._end.close()


class JetStream:
    """As nats.js.JetStreamContext."""

    def __init__(self, client: Client, timeout: float) -> None:
        self._client = client
        self._timeout = timeout

    async def publish(self, subject: str, payload: bytes, headers: dict[str, str] | None = None) -> None:
        await self._ask("publish", subject, payload, next(iter((headers or {}).values()), ""))

    async def add_stream(self, _config: object) -> None:
        await self._ask("add")

    async def update_stream(self, _config: object) -> None:
        await self._ask("update")

    async def stream_info(self, _stream: str) -> StreamInfo:
        number = await self._ask("last")
        return StreamInfo(config=StreamConfig(), state=StreamState(0, 0, 0, last_seq=number, consumer_count=1))

    async def delete_consumer(self, _stream: str, _name: str) -> None:
        await self._ask("consumer")

    async def add_consumer(self, _stream: str, _config: object) -> None:
        await self._ask("consumer")

    async def pull_subscribe_bind(self, _name: str, _stream: str) -> Subscription:
        return Subscription(self._client)

    async def _ask(self, name: str, *arguments: Any) -> Any:
        return await _within(self._client.connected().ask(name, *arguments), self._timeout)


class Subscription:
    """As JetStreamContext.PullSubscription."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def fetch(self, most: int, timeout: float) -> list[Message]:  # noqa: ASYNC109 - as nats-py has it
        end = self._client.connected()
        found: list[Kept] = await _within(end.ask("fetch", most), timeout)
        return [Message(end, kept) for kept in found]


@dataclass(slots=True)
class Message:
    """As nats.aio.msg.Msg."""

    _end: _ClientEnd
    kept: Kept

    @property
    def subject(self) -> str:
        return self.kept.subject

    @property
    def data(self) -> bytes:
        return self.kept.data

    async def ack(self) -> None:
        if self._end.lost:
            raise nats.errors.ConnectionClosedError
        self._end.tell("acknowledge", self.kept.number)


async def _within(answer: asyncio.Future[Any], seconds: float) -> Any:
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError:
        raise nats.errors.TimeoutError from None
