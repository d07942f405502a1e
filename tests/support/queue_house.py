"""Store, router and queue processes in one process over unix sockets, and links to them that speak raw frames."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from services.common.clients.store import StoreClient
from services.common.clients.topology import TopologyClient
from services.common.clock import epoch_ms
from services.common.config import Settings
from services.common.grpc_channel import connect
from services.common.message import arguments, columns
from services.common.message.facts import Facts
from services.common.message.indexes import chosen, runs
from services.queue.service import Service as QueueService
from services.router.service import Service as RouterService
from services.rpc import queue_pb2 as pb
from services.rpc.queue_pb2_grpc import QueueStub
from services.rpc.router_pb2 import Bind, ChangeRequest, CloseLink, DeclareExchange, DeclareQueue, DeleteQueue
from services.store.service import Service as StoreService

PROPERTIES = b"\x00\x00"
_MAKER: Final = {"connection": "test-1", "session": "1", "link": "1"}


class House:
    """What a gateway finds."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        defaults = {
            "store_provider": "memory",
            "partitions": 8,
            "queue_processes": 1,
            "lease_ttl_ms": 1000,
            "place_ttl_ms": 1000,
        }
        self.settings = Settings(data=folder, **{**defaults, **settings})
        self.store = StoreService(self.settings)
        self.router = RouterService(self.settings)
        self.queues: dict[str, QueueService] = {}
        self.links: list[RawLink] = []
        self.topology: TopologyClient = None  # type: ignore[assignment]

    async def start(self) -> None:
        await self.store.start()
        await self.router.start()
        await self.start_queue("queue-1")
        self._client = StoreClient(self.settings.address_of("store"))
        self.topology = TopologyClient(self._client, "test", "gateway", "test")
        await self.topology.start()

    async def stop(self) -> None:
        for link in self.links:
            await link.close()
        await self.topology.stop()
        await self._client.close()
        for service in self.queues.values():
            await service.stop()
        await self.router.stop()
        await self.store.stop()

    async def start_queue(self, name: str) -> QueueService:
        service = self.queues[name] = QueueService(self.settings, name)
        await service.start()
        return service

    async def declare(
        self,
        name: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        table: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> int:
        """Arguments that begin with x- by their names, others in a `table`."""
        table = {f"x-{key.replace('_', '-')}": value for key, value in more.items()} | dict(table or {})
        declare = DeclareQueue(name=name, durable=durable, auto_delete=auto_delete, arguments=arguments.dump(table))
        reply = await self.topology.change(ChangeRequest(virtual_host="/", declare_queue=declare))
        return reply.queue.id

    async def declare_by_link(self, name: str, lifetime: str) -> int:
        """As a link of AMQP 1.0 makes one for itself, by a lifetime; `end_link` ends that link."""
        declare = DeclareQueue(name=name, lifetime=lifetime)
        reply = await self.topology.change(ChangeRequest(virtual_host="/", declare_queue=declare, **_MAKER))
        return reply.queue.id

    async def end_link(self) -> None:
        await self.topology.change(ChangeRequest(virtual_host="/", close_link=CloseLink(), **_MAKER))

    async def delete(self, name: str) -> None:
        await self.topology.change(ChangeRequest(virtual_host="/", delete_queue=DeleteQueue(name=name)))

    async def declare_exchange(self, name: str, queue: str, key: str) -> None:
        exchange = DeclareExchange(name=name, type="direct")
        await self.topology.change(ChangeRequest(virtual_host="/", declare_exchange=exchange))
        bind = Bind(source=name, destination=queue, routing_key=key)
        await self.topology.change(ChangeRequest(virtual_host="/", bind=bind))

    async def link(self, name: str = "queue-1", origin: int = 1000, **hello: Any) -> RawLink:
        link = RawLink(self.settings.address_of(name), origin, **hello)
        self.links.append(link)
        await link.open()
        return link


class RawLink:
    """A gateway's end of a stream; everything received is kept."""

    def __init__(self, address: str, origin: int, **hello: Any) -> None:
        """`hello` is what else it says of itself."""
        self._channel = connect(address)
        self._hello = pb.Hello(origin=origin, name="test", **hello)
        self._sequence = 0
        self._uid = origin << 39
        self.frames: list[pb.QueueFrame] = []
        self.uids: list[int] = []
        self.bodies: list[bytes] = []
        self.runs: list[pb.DeliveryRun] = []
        self.properties: list[bytes] = []
        self.facts: list[Facts] = []

    async def open(self) -> None:
        self._call = QueueStub(self._channel).Attach(wait_for_ready=True)
        await self._call.write(pb.LinkFrame(hello=self._hello))
        self._reader = asyncio.get_running_loop().create_task(self._read())

    async def close(self) -> None:
        self._call.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self._channel.close()

    async def _read(self) -> None:
        async for frame in self._call:
            self.frames.append(frame)
            self.uids.extend(frame.deliveries.uids)
            self.bodies.extend(frame.deliveries.bodies)
            self.runs.extend(frame.deliveries.runs)
            self.properties.extend(columns.properties_in(frame.deliveries))
            self.facts.extend(columns.facts_in(frame.deliveries))

    async def send(self, **parts: Any) -> None:
        await self._call.write(pb.LinkFrame(**parts))

    def batch(
        self,
        queue_id: int | list[int],
        bodies: list[bytes],
        *,
        uids: list[int] | None = None,
        transaction: int = 0,
        time_ms: int = 1,
        properties: bytes = PROPERTIES,
        resumed: Sequence[int] = (),
        terms: Sequence[pb.Term] = (),
        kept: bool = False,
        **run: Any,
    ) -> bytes:
        self._sequence += 1
        if uids is None:
            uids = list(range(self._uid + 1, self._uid + 1 + len(bodies)))
            self._uid = uids[-1]
        queue_ids = [queue_id] if isinstance(queue_id, int) else queue_id
        described = pb.PublishRun(
            count=len(bodies), virtual_host="/", exchange="", routing_key="key", queue_ids=queue_ids,
            format="amqp-0-9", shared_properties=properties, **run,
        )  # fmt: skip
        return pb.PublishBatch(
            sequence=self._sequence, uids=uids, bodies=bodies, runs=[described], transaction=transaction,
            time_ms=time_ms, resumed=resumed, terms=terms, kept=kept,
        ).SerializeToString()  # fmt: skip

    async def publish(self, queue_id: int | list[int], bodies: list[bytes], **more: Any) -> int:
        """Returns its sequence when the batch is done."""
        raw = self.batch(queue_id, bodies, **more)
        sequence = self._sequence
        await self.send(publishes=[raw])
        await self.until(lambda: sequence in self.done())
        return sequence

    async def publish_facts(self, queue_id: int, bodies: list[bytes], facts: Facts, keys: Sequence[str] = ()) -> None:
        """Returns when it is done: messages of which these are the facts, each with a key of its own if there are any.

        That is said in a column of keys then.
        """
        batch = pb.PublishBatch.FromString(self.batch(queue_id, bodies, time_ms=epoch_ms()))
        batch.ClearField("runs")
        columns.put(batch, [facts] * len(bodies), [PROPERTIES] * len(bodies))
        batch.keys.extend(keys)
        batch.queues.append(pb.QueueMessages(queue_id=queue_id, count=len(bodies)))
        await self.send(publishes=[batch.SerializeToString()])
        await self.until(lambda: batch.sequence in self.done())

    async def attach(self, queue_id: int, consumer: int = 1, *, messages: int = 1000, **more: Any) -> pb.Attached:
        attach = pb.AttachConsumer(consumer=consumer, queue_id=queue_id, messages=messages, bytes=1 << 40, **more)
        await self.send(attaches=[attach])
        await self.until(lambda: any(a.consumer == consumer for f in self.frames for a in f.attached))
        return next(a for f in reversed(self.frames) for a in f.attached if a.consumer == consumer)

    async def request(self, number: int, **request: Any) -> pb.QueueReply:
        await self.send(requests=[pb.QueueRequest(id=number, **request)])
        await self.until(lambda: any(r.id == number for f in self.frames for r in f.replies))
        return next(r for f in self.frames for r in f.replies if r.id == number)

    async def ready(self, queue_id: int, number: int) -> int:
        return (await self.request(number, inspect=pb.InspectRequest(queue_id=queue_id))).message_count

    def done(self) -> list[int]:
        return [sequence for frame in self.frames for sequence in frame.done]

    def refusals(self) -> list[tuple[int, int, int]]:
        return [(first, count, r.reason) for f in self.frames for r in f.refusals for first, count in runs(chosen(r))]

    async def until(self, condition: Callable[[], object], seconds: float = 60) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.005)
