"""An AMQP 0-9-1 client that does what tests say, frame by frame; its frames are written and read by pamqp."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pamqp import body, commands, frame, header

from tests.support.amqp_playbook import CAPABILITIES, HEADER, content, written

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Message:
    """A basic.deliver, basic.get-ok or basic.return with its content."""

    method: Any
    properties: Any
    body: bytes

    @property
    def tag(self) -> int:
        tag: int = self.method.delivery_tag
        return tag


class AmqpClient:
    """`frames` is everything that came, as (channel, value); contents are put together as Messages."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, Any]] = []
        self.closed = False
        self._seen = 0
        self._partial: dict[int, list[Any]] = {}
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._reading = asyncio.Event()

    async def open(
        self, port: int, *, host: str = "127.0.0.1", user: str = "guest", password: str = "guest",
        virtual_host: str = "/", heartbeat: int = 0, channels: int = 1, buffer: int = 2**16, source: str = "",
        before: bytes = b"", tls: ssl.SSLContext | None = None, streams: Any = None,
    ) -> None:  # fmt: skip
        self.reader, self.writer = (streams.reader, streams) if streams else await asyncio.open_connection(
            host, port, limit=buffer, local_addr=(source, 0) if source else None, ssl=tls,
            server_hostname="localhost" if tls else None,
        )  # fmt: skip
        self.writer.write(before + HEADER)
        self._reading.set()
        self._task = asyncio.get_running_loop().create_task(self._read())
        await self.expect(commands.Connection.Start)
        login = f"\0{user}\0{password}"
        self.send(0, commands.Connection.StartOk({"capabilities": dict(CAPABILITIES)}, "PLAIN", login, "en_US"))
        tune = await self.expect((commands.Connection.Tune, commands.Connection.Close))
        if isinstance(tune, commands.Connection.Close):
            return
        self.send(0, commands.Connection.TuneOk(tune.channel_max, tune.frame_max, heartbeat))
        self.send(0, commands.Connection.Open(virtual_host))
        opened = await self.expect((commands.Connection.OpenOk, commands.Connection.Close))
        if isinstance(opened, commands.Connection.OpenOk):
            for channel in range(1, channels + 1):
                await self.call(channel, commands.Channel.Open(), commands.Channel.OpenOk)

    # -------------------------------------------------------------- reading

    def read_on(self) -> None:
        """Reads in the background again."""
        self._reading.set()

    def stop_reading(self) -> None:
        """Leaves what comes in the socket, but for the frame at hand."""
        self._reading.clear()

    async def _read(self) -> None:
        try:
            while await self._reading.wait():
                head = await self.reader.readexactly(7)
                data = head + await self.reader.readexactly(int.from_bytes(head[3:], "big") + 1)
                _, channel, value = frame.unmarshal(data)
                self._take(channel, value)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed = True
            self._more.set()

    def _take(self, channel: int, value: Any) -> None:
        parts = self._partial.get(channel)
        if isinstance(value, commands.Basic.Deliver | commands.Basic.GetOk | commands.Basic.Return):
            self._partial[channel] = [value]
            return
        if isinstance(value, header.ContentHeader | body.ContentBody):
            assert parts is not None
            parts.append(value)
            pieces = [part.value for part in parts[2:]]
            if sum(map(len, pieces)) < parts[1].body_size:
                return
            value = Message(parts[0], parts[1].properties, b"".join(pieces))
            del self._partial[channel]
        self.frames.append((channel, value))
        self._more.set()

    async def until(self, condition: Callable[[], T | None], seconds: float = 10) -> T:
        """Waits for frames until the condition holds; gives what it gives."""
        async with asyncio.timeout(seconds):
            while not (found := condition()):
                self._more.clear()
                await self._more.wait()
        return found

    async def expect(self, kind: Any, channel: int | None = None, seconds: float = 10) -> Any:
        """The next frame of that kind that no caller has taken yet."""

        def find() -> tuple[Any] | None:
            for index in range(self._seen, len(self.frames)):
                its_channel, value = self.frames[index]
                if isinstance(value, kind) and channel in (None, its_channel):
                    self._seen = index + 1
                    return (value,)  # frames without arguments are false
            assert not self.closed, f"closed while waiting for {kind}: {self.frames[-3:]}"
            return None

        (found,) = await self.until(find, seconds)
        return found

    def messages(self, kind: Any = commands.Basic.Deliver, channel: int | None = None) -> list[Message]:
        """Every message that came so far."""
        return [
            value
            for its, value in self.frames
            if isinstance(value, Message) and isinstance(value.method, kind) and channel in (None, its)
        ]

    async def bodies(self, count: int, channel: int | None = None, seconds: float = 10) -> list[bytes]:
        """The bodies of the first deliveries, when there are so many."""
        await self.until(lambda: len(self.messages(channel=channel)) >= count, seconds)
        return [message.body for message in self.messages(channel=channel)]

    def of(self, kind: Any) -> list[Any]:
        """Every frame of a kind that came so far."""
        return [value for _, value in self.frames if isinstance(value, kind)]

    # -------------------------------------------------------------- writing

    def send(self, channel: int, *values: Any) -> None:
        self.writer.write(written(channel, *values))

    def publish(self, payload: bytes, routing_key: str, channel: int = 1, **options: Any) -> None:
        self.writer.write(content(channel, payload, routing_key=routing_key, **options))

    async def call(self, channel: int, request: Any, kind: Any, seconds: float = 10) -> Any:
        """Sends a method and gives its answer."""
        self.send(channel, request)
        return await self.expect(kind, channel, seconds)

    async def refused(self, channel: int, *values: Any) -> int:
        """Sends what the broker closes the channel for; gives the reply code, and the channel is open again."""
        self.send(channel, *values)
        close = await self.expect(commands.Channel.Close, channel)
        self.send(channel, commands.Channel.CloseOk())
        await self.call(channel, commands.Channel.Open(), commands.Channel.OpenOk)
        code: int = close.reply_code
        return code

    async def declare(self, name: str = "", channel: int = 1, **options: Any) -> Any:
        """queue.declare-ok."""
        return await self.call(channel, commands.Queue.Declare(queue=name, **options), commands.Queue.DeclareOk)

    async def consume(self, queue: str, tag: str = "c", channel: int = 1, **options: Any) -> None:
        request = commands.Basic.Consume(queue=queue, consumer_tag=tag, **options)
        await self.call(channel, request, commands.Basic.ConsumeOk)

    async def prefetch(self, count: int, channel: int = 1, *, shared: bool = False) -> None:
        request = commands.Basic.Qos(prefetch_count=count, global_=shared)
        await self.call(channel, request, commands.Basic.QosOk)

    async def get(self, queue: str, channel: int = 1, *, no_ack: bool = False) -> Message | None:
        self.send(channel, commands.Basic.Get(queue=queue, no_ack=no_ack))
        answer = await self.expect((Message, commands.Basic.GetEmpty), channel)
        return answer if isinstance(answer, Message) else None

    async def confirmed(self, count: int, channel: int = 1, seconds: float = 10) -> None:
        """Returns when publishes up to `count` are confirmed by cumulative acks."""
        await self.until(
            lambda: any(ack.delivery_tag >= count for its, ack in self.frames
                        if its == channel and isinstance(ack, commands.Basic.Ack)), seconds,
        )  # fmt: skip

    def ack(self, tag: int, channel: int = 1, *, multiple: bool = False) -> None:
        self.send(channel, commands.Basic.Ack(tag, multiple))

    async def close(self) -> None:
        """Says goodbye and waits for the answer."""
        await self.call(0, commands.Connection.Close(200, "", 0, 0), commands.Connection.CloseOk)
        self.abort()

    def abort(self) -> None:
        """Is gone."""
        if self._task:
            self._task.cancel()
        writer: asyncio.StreamWriter | None = getattr(self, "writer", None)  # none of a client that did not get so far
        if writer and not writer.is_closing():
            writer.transport.abort()
