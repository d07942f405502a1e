from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import weakref
from typing import Any

import pytest

from services.common.clients.healthz import ask
from services.common.config import Settings
from services.common.grpc_server import Server
from services.common.runtime import CannotStart
from services.mgmt.http.server import HttpServer
from services.mgmt.service import Service
from tests.support.fake_store import FakeStore


async def _serve(address: str) -> Server:
    server = Server(address, [])
    await server.listen()
    await server.ready()
    return server


async def _until(mgmt: Service, wanted: int) -> dict[str, str]:
    async with asyncio.timeout(5):
        while True:
            status, body = await ask("127.0.0.1", mgmt.http_port)
            if status == wanted:
                return dict(body["services"])
            await asyncio.sleep(0.02)


async def test_says_which_part_is_missing(mgmt: Service) -> None:
    """Before all parts are there, /healthz answers 503 and names the missing ones."""
    services = await _until(mgmt, 503)
    assert services == {
        "store": "ok",
        "mgmt": "ok",
        "router": "not serving",
        "gateway": "not serving",
        "queue": "0 of 4 partitions have an owner",
    }


async def test_ready_and_not_again(mgmt: Service, settings: Settings, store: FakeStore) -> None:
    """/healthz answers 200 once everything serves and every partition is leased, and 503 when a queue process dies."""
    queue = await _serve(settings.address_of("queue-1"))
    others = [await _serve(settings.address_of(name)) for name in ("router", "gateway")]
    store.lease(range(4), settings.address_of("queue-1"))
    assert set((await _until(mgmt, 200)).values()) == {"ok"}
    await queue.stop(0)
    assert (await _until(mgmt, 503))["queue"].startswith("not serving: unix:")
    for server in others:
        await server.stop(0)


async def test_health_without_a_store(settings: Settings) -> None:
    """/healthz answers while mgmt still waits for the store, and mgmt is ready as soon as that comes."""
    service = Service(settings)
    starting = asyncio.create_task(service.start())
    await asyncio.sleep(0.2)
    assert (await _until(service, 503))["store"] == "not serving"
    assert not starting.done()
    store = FakeStore()
    await store.start(settings.address_of("store"))
    await asyncio.wait_for(starting, 5)
    assert ("user", "guest") in store.records
    await service.stop()
    await store.stop()


async def test_port_in_use(settings: Settings) -> None:
    """A port that is taken ends the start with a line that says which setting to change."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotStart, match=f"{port}.*HOPLINE_HTTP_PORT"):
            await Service(settings.model_copy(update={"http_port": port})).start()


async def test_signals_stay_the_process_s_own(mgmt: Service) -> None:
    """The HTTP server does not take SIGTERM away from its handler."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, told.set)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(told.wait(), 2)
    loop.remove_signal_handler(signal.SIGTERM)
    assert (await ask("127.0.0.1", mgmt.http_port))[0] == 503


async def test_something_else_on_the_port() -> None:
    """`hopline health` says so when what answers is not Hopline."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 smtp ready\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    with pytest.raises(ConnectionError, match="not Hopline"):
        await ask("127.0.0.1", server.sockets[0].getsockname()[1])
    server.close()


async def test_nothing_is_kept_of_the_application() -> None:
    """After a stop what it made is free, though something keeps the server: tests make hundreds."""

    class Large:
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            raise NotImplementedError

    serving, application = HttpServer(Settings(http_host="127.0.0.1", http_port=0)), Large()
    kept = weakref.ref(application)
    serving.start(application)
    await asyncio.sleep(0.05)
    await serving.stop()
    del application
    gc.collect()
    assert kept() is None
