"""A gateway's copy of bindings that have selectors, when many come in one frame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from services.common.arguments.costly import selectors_of
from services.common.arguments.filters import SELECTOR
from services.common.clients.topology import TopologyClient
from services.common.compiling import Compiling
from services.common.grpc_server import Server
from services.common.memo import Memo
from services.common.message import arguments
from services.common.selectors import selector as selectors
from services.common.topology.exchanges.exchange_type import Binding
from services.common.topology.records import binding_key, binding_record
from services.gateway.routing.bindings import Bindings
from services.rpc import router_pb2
from services.rpc.router_pb2_grpc import RouterServicer, add_RouterServicer_to_server
from services.rpc.store_pb2 import Lease, LeaseTable

_MANY = 20


class Store:
    """Says which router writes."""

    def __init__(self, address: str) -> None:
        self._lease = Lease(name="router", epoch=1, member="router-1", address=address)

    async def watch_leases(self, _role: str) -> AsyncIterator[LeaseTable]:
        yield LeaseTable(leases=[self._lease])
        await asyncio.Event().wait()


class Router(RouterServicer):
    """Has nothing but bindings, and tells of them at once."""

    async def Watch(  # noqa: N802
        self, request_iterator: AsyncIterator[router_pb2.WatcherFrame], context: Any
    ) -> AsyncIterator[router_pb2.TopologyFrame]:
        del request_iterator, context
        bound = [_record(number) for number in range(_MANY)]
        yield router_pb2.TopologyFrame(
            snapshot=True, last=True, evaluated=True, version=1, virtual_hosts=["/"], records=bound
        )
        await asyncio.Event().wait()


def _record(number: int) -> router_pb2.TopologyRecord:
    text = " OR ".join(f"copied{number} = {each}" for each in range(100))
    binding = Binding(number, "k", arguments.dump({SELECTOR: text}))
    key, record = binding_key("/", "amq.direct", binding), binding_record("/", "amq.direct", binding, durable=True)
    return router_pb2.TopologyRecord(kind=key.kind, key=key.key, value=record.value)


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[str]:
    """A router's."""
    address = f"unix:{tmp_path}/router.sock"
    server = Server(address, ["hopline.router.Router"])
    add_RouterServicer_to_server(Router(), server.grpc)
    await server.listen()
    yield address
    await server.stop(0)


def _client(
    address: str, copy: Bindings, ahead: Callable[[router_pb2.TopologyFrame], Awaitable[object]]
) -> TopologyClient:
    return TopologyClient(cast("Any", Store(address)), "gateway-1", "gateway", "1.", copy=copy, ahead=ahead)


async def test_one_is_compiled_in_a_turn(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, whatever is remembered; then the copy is whole."""
    turn, turns, compiled = 0, list[int](), selectors._compiled

    def counted(text: str) -> selectors.Selector:
        turns.append(turn)
        return compiled(text)

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(selectors, "_compiled", counted)
    monkeypatch.setattr(selectors, "_known", Memo[str, selectors.Selector](2, 0))
    compiling, copy = Compiling(), Bindings()
    client = _client(address, copy, lambda frame: compiling.kept(selectors_of(frame)))
    beside = asyncio.ensure_future(others())
    await client.start()
    beside.cancel()
    await client.stop(leave=False)
    assert copy.whole
    assert len((copy.sources("/") or {})["amq.direct"].bindings) == _MANY
    assert len(set(turns)) == len(turns) == _MANY


async def test_a_fault_ahead(address: str) -> None:
    """What only makes a frame cheaper to take, and fails, does not keep the gateway from it."""

    async def odd(_frame: router_pb2.TopologyFrame) -> object:
        raise RuntimeError("odd")

    copy = Bindings()
    client = _client(address, copy, odd)
    async with asyncio.timeout(60):
        await client.start()
    await client.stop(leave=False)
    assert copy.whole
