"""The store over gRPC, through its client."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncGenerator
from typing import Any

import grpc.aio
import pytest

from services.common.clients.store import Journal, StoreClient
from services.common.config import Settings
from services.common.errors import CommandInvalid, Fenced, InternalError, PreconditionFailed, Unavailable
from services.common.grpc_channel import connect, is_serving
from services.common.grpc_errors import from_rpc
from services.rpc.store_pb2 import BackupRequest, Fence, JournalFrame, KeepAliveRequest, LeaseTable, Record
from services.rpc.store_pb2_grpc import StoreStub
from services.store.choice import insist_on_no_half
from services.store.provider import Changes
from services.store.providers.sqlite import SQLiteProvider
from services.store.service import Service
from tests.support.apart import made
from tests.support.read_back import read_back
from tests.support.store_house import dequeue, enqueue, entries


async def acquire(client: StoreClient, name: str) -> Fence:
    reply = await client.keep_alive(KeepAliveRequest(member="m", role="queue", address="a", acquire=[name]))
    (lease,) = [lease for lease in reply.leases if lease.name == name]
    return Fence(lease=name, epoch=lease.epoch)


async def test_the_way_of_a_partition(service: Service, client: StoreClient, journal: Journal) -> None:
    """Acquire, write, recover; a transaction too; what is refused comes as a type."""
    fence = await acquire(client, "partition/1")
    acks = await asyncio.gather(
        journal.append(enqueue(10, 3, fences=[fence])),
        journal.append(dequeue(10, 1, fences=[fence])),
        journal.append(enqueue(20, 1, fences=[fence], transaction=5)),
        journal.append(enqueue(30, 1, fences=[Fence(lease="partition/1", epoch=99)])),
    )
    assert [list(ack.fenced) for ack in acks] == [[], [], [], ["partition/1"]]
    assert (await client.commit_transaction(5, 1)).committed
    assert (await client.resolve_transaction(5)).committed
    marks, batches = await read_back(client, fence)
    assert [floor.uid for floor in marks.floors] == [20]
    assert [(batch.entries.id, list(batch.dequeued)) for batch in batches] == [(10, [1]), (20, [])]
    with pytest.raises(Fenced):
        await anext(client.recover([Fence(lease="partition/1", epoch=99)]))
    with pytest.raises(PreconditionFailed, match="content 77"):
        await journal.append(JournalFrame(entries=[entries(40, 1, of=77)]))


async def test_records_and_origins(service: Service, client: StoreClient) -> None:
    """Put, list and watch; an origin each time; a fence that does not hold raises Fenced."""
    version = await client.put_records([Record(kind="queue", key="a", value=b"1")])
    assert [(record.key, record.version) for record in await client.list_records(["queue"])] == [("a", version)]
    watch = client.watch_records(["queue"])
    assert (await anext(watch)).last
    await client.put_records(deletes=[Record(kind="queue", key="a")])
    assert [record.deleted for record in (await anext(watch)).records] == [True]
    with pytest.raises(Fenced):
        await client.put_records([Record(kind="queue", key="a")], fence=Fence(lease="router", epoch=3))
    first, incarnation = await client.allocate_origin("x")
    assert await client.allocate_origin("y") == (first + 1, incarnation)


async def test_a_store_that_ends_grants_nothing(settings: Settings, client: StoreClient) -> None:
    """A client that is still connected when the store gives up its address gets no lease any more."""
    service = Service(settings)
    await service.start()
    await client.keep_alive(KeepAliveRequest(member="m", role="queue", address="a"))
    ending = asyncio.create_task(service.stop())
    await asyncio.sleep(0)
    request = KeepAliveRequest(member="m", role="queue", address="a", acquire=["partition/1"])
    try:
        assert not (await client.keep_alive(request)).leases
    finally:
        await ending


async def test_a_stream_without_a_writer_is_refused(service: Service, settings: Settings) -> None:
    """The first frame must name its writer."""
    async with connect(settings.address_of("store")) as channel:
        call = StoreStub(channel).Journal()
        await call.write(JournalFrame(sequence=1))
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await call.read()
        assert isinstance(from_rpc(failure.value), CommandInvalid)


async def test_a_torn_stream_loses_and_doubles_nothing(
    service: Service, client: StoreClient, settings: Settings
) -> None:
    """A writer that comes back and sends its frames again finds each of them once."""
    origin, _ = await client.allocate_origin("torn")
    async with connect(settings.address_of("store")) as channel:
        stub = StoreStub(channel)
        for _ in range(3):
            call = stub.Journal()
            await call.write(enqueue(10, 3, sequence=1, origin=origin))
            await call.write(dequeue(10, 0, sequence=2))
            call.cancel()
        call = stub.Journal()
        await call.write(enqueue(10, 3, sequence=1, origin=origin))
        await call.write(dequeue(10, 0, sequence=2))
        await call.done_writing()
        assert [(await call.read()).sequence for _ in range(2)] == [1, 2]
        assert await call.read() is grpc.aio.EOF
    _, (batch,) = await read_back(client, Fence(lease="partition/1", epoch=0))
    assert list(batch.dequeued) == [0]


async def test_clients_outlive_the_store(settings: Settings, client: StoreClient, journal: Journal) -> None:
    """Frames appended before and between stores are answered by the next; watches begin again."""
    settings = settings.model_copy(update={"store_provider": "sqlite"})
    early = journal.append(enqueue(10, 1))
    tables: asyncio.Queue[LeaseTable] = asyncio.Queue()

    async def watch() -> None:
        async for table in client.watch_leases("queue"):
            tables.put_nowait(table)

    watching = asyncio.create_task(watch())
    versions = []
    for turn in range(2):
        service = Service(settings)
        await service.start()
        await asyncio.wait_for(early, 10)
        versions.append((await asyncio.wait_for(tables.get(), 10)).version)
        assert not (await journal.append(enqueue(20 + turn, 1))).refused
        await service.stop()
        early = journal.append(enqueue(30 + turn, 1))
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert versions == sorted(set(versions))
    await journal.stop()
    with pytest.raises(Unavailable):
        await early


async def test_a_store_that_is_away(client: StoreClient) -> None:
    """A keep-alive gives up at its deadline."""
    with pytest.raises(Unavailable):
        await client.keep_alive(KeepAliveRequest(member="m", role="queue"), timeout=0.2)


async def test_the_folder_is_private_and_has_one_store(service: Service, settings: Settings) -> None:
    """The data folder is 0700; a second store on it says what is wrong, and the first goes on."""
    assert stat.S_IMODE(settings.data.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in settings.data.glob("hopline.db*")} <= {0o600}
    with pytest.raises(InternalError, match="another store runs on"):
        await Service(settings).start()
    assert await is_serving(settings.address_of("store"))


async def test_no_empty_store_beside_anothers_configuration(settings: Settings) -> None:
    """Its settings were forgotten, once or twice; a store that has begun there goes on."""
    inner = settings.data / "configuration"
    inner.mkdir(parents=True)
    await made(inner, SQLiteProvider)
    for opened in (False, True):
        if opened:
            empty = SQLiteProvider(settings.data)
            await empty.open()
            await empty.close()
        with pytest.raises(InternalError, match="messages are elsewhere: set HOPLINE_STORE_CONFIGURATION_URL=sqlite:"):
            await Service(settings, SQLiteProvider(settings.data)).start()
    await made(settings.data, SQLiteProvider)
    await insist_on_no_half(SQLiteProvider(settings.data), settings.data)


async def test_backup(service: Service, client: StoreClient, journal: Journal) -> None:
    """A running store streams all that it has: first of when it is, last how far it has counted."""
    fence = await acquire(client, "partition/1")
    await journal.append(enqueue(10, 3, fences=[fence]))
    head, *pieces = [piece async for piece in client.backup()]
    assert (head.head.generation, head.HasField("head")) == (1, True)
    assert [batch.id for piece in pieces for batch in piece.entries] == [10]
    assert [piece.incarnation > 0 for piece in pieces] == [False] * (len(pieces) - 1) + [True]


async def test_backup_of_a_store_that_cannot_be_read(
    service: Service, client: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller is told why, and what came until then is no backup."""

    def broken(_: object) -> object:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("services.store.providers.memory.MemoryProvider._tables", broken)
    with pytest.raises(InternalError, match="Input/output error"):
        _ = [piece async for piece in client.backup()]


async def test_backup_that_is_not_read(
    service: Service, settings: Settings, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are held in memory for a caller that takes a backup, so one that does not go on is ended."""
    monkeypatch.setattr("services.store.handler._PATIENCE", 0.1)
    ended = asyncio.Event()
    snapshot = service._engine.provider.snapshot

    async def watched() -> AsyncGenerator[Changes, None]:
        try:
            async for changes in snapshot():
                yield changes
        finally:
            ended.set()

    monkeypatch.setattr(service._engine.provider, "snapshot", watched)
    for number in range(10, 50):
        frame = enqueue(number, 1)
        frame.contents[0].columns += bytes(1 << 20)
        await journal.append(frame)
    channel = connect(settings.address_of("store"))
    call = StoreStub(channel).Backup(BackupRequest())
    await call.read()
    await asyncio.wait_for(ended.wait(), 10)
    with pytest.raises(grpc.aio.AioRpcError, match="took nothing"):
        await _read_all(call)
    await channel.close()


async def _read_all(call: Any) -> None:
    while await call.read():
        pass
