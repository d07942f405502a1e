"""Several routers: one writes, all evaluate."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
import pytest

from services.common.clients.dry_run import DryRunOfAny
from services.common.errors import NotFound
from services.common.grpc_channel import connect, is_serving
from services.rpc import router_pb2, router_pb2_grpc
from tests.support.silent_listener import silent_listener


@pytest.fixture
def ttl_ms() -> int:
    """Long: a busy machine stops a process for longer than the short one, and then a router rightly says nothing."""
    return 3000


def _to(exchange: str, key: str) -> router_pb2.RouteRequest:
    return router_pb2.RouteRequest(messages=[router_pb2.Message(virtual_host="/", exchange=exchange, routing_key=key)])


async def test_a_second_router_evaluates_what_was_just_bound(cluster: Any) -> None:
    """When a change is answered, the router that follows already routes by it, every time."""
    await cluster.start_router()
    await cluster.start_router("router-2")
    client = await cluster.watch("g1")
    reply = await client.change(cluster.request("declare_queue", name="q"))
    async with connect(cluster.settings.address_of("router-2")) as channel:
        follower = router_pb2_grpc.RouterStub(channel)
        for number in range(30):
            change = {"source": "amq.topic", "destination": "q", "routing_key": f"k.{number}"}
            await client.change(cluster.request("bind", **change))
            [found] = (await follower.Route(_to("amq.topic", f"k.{number}"))).routed
            assert list(found.queue_ids) == [reply.queue.id]
            await client.change(cluster.request("unbind", **change))
            [lost] = (await follower.Route(_to("amq.topic", f"k.{number}"))).routed
            assert not lost.queue_ids


async def test_a_router_that_follows_answers_every_request(cluster: Any) -> None:
    """It hands changes on with their errors, describes the topology, and gives no places."""
    await cluster.start_router()
    await cluster.start_router("router-2")
    assert await is_serving(cluster.settings.address_of("router-2"))
    async with connect(cluster.settings.address_of("router-2")) as channel:
        follower = router_pb2_grpc.RouterStub(channel)
        await follower.Change(cluster.request("declare_queue", name="q"))
        described = await follower.Describe(router_pb2.DescribeRequest(virtual_host="/"))
        assert [queue.name for queue in described.queues] == ["q"]
        with pytest.raises(grpc.aio.AioRpcError, match="no queue 'none'"):
            await follower.Change(cluster.request("declare_queue", name="none", passive=True))
        with pytest.raises(grpc.aio.AioRpcError, match="does not write"):
            await follower.Watch(iter([router_pb2.WatcherFrame(member="g1", role="gateway")])).read()


async def test_questions_are_spread_over_the_routers(cluster: Any) -> None:
    """Some gateways ask one router, some the other, and all get the same answer."""
    await cluster.start_router()
    await cluster.start_router("router-2")
    clients = [await cluster.watch(f"g{number}") for number in range(8)]
    assert len({client.routers.evaluator() for client in clients}) == 2
    reply = await clients[0].change(cluster.request("declare_queue", name="q"))
    for client in clients:
        [routed] = (await client.route(list(_to("", "q").messages))).routed
        assert list(routed.queue_ids) == [reply.queue.id]


async def test_the_next_router_takes_over_while_clients_go_on(cluster: Any, until: Any) -> None:
    """When the writing router stops, watchers keep their places and what they asked for meanwhile is done."""
    first = await cluster.start_router()
    second = await cluster.start_router("router-2")
    client = await cluster.watch("g1")
    await client.change(cluster.request("declare_queue", name="before"))
    await until(client.has_place)
    known = client.version
    stopping = asyncio.ensure_future(cluster.stop_one(first))
    names = [f"q{number}" for number in range(20)]
    for name in names:
        await client.change(cluster.request("declare_queue", name=name))
        assert client.has_place()
    await stopping
    assert client.version > known
    assert {each.queue for each in client.by_name} == {"before", *names}
    await cluster.start_router("router")
    await cluster.stop_one(second)
    with pytest.raises(NotFound):
        await client.change(cluster.request("declare_queue", name="none", passive=True))
    assert (await client.change(cluster.request("declare_queue", name="before", passive=True))).queue.name == "before"


async def test_a_change_that_waits_at_the_router_which_takes_over(cluster: Any) -> None:
    """Is answered at once: the caller is to ask again, and does. No router hands a change on to itself."""
    first = await cluster.start_router()
    second = await cluster.start_router("router-2")
    cluster.store.reserved = cluster.store.holder
    await cluster.stop_one(first)
    async with connect(cluster.settings.address_of("router-2")) as channel:
        follower = router_pb2_grpc.RouterStub(channel)
        waiting = [asyncio.ensure_future(follower.Change(cluster.request("declare_queue", name="q"))) for _ in range(3)]
        await asyncio.sleep(0.2)
        cluster.store.reserved = ""
        async with asyncio.timeout(8):
            answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert {answer.code() for answer in answers} == {grpc.StatusCode.UNAVAILABLE}
        async with asyncio.timeout(8):
            while await _refused(follower.Change(cluster.request("declare_queue", name="q")), ""):
                await asyncio.sleep(0.01)
    await cluster.stop_one(second)


async def test_any_router_explains(cluster: Any, until: Any) -> None:
    """While one of two routers stops, where a message would go is still told, whichever would have been asked first."""
    first = await cluster.start_router()
    await cluster.start_router("router-2")
    clients = [await cluster.watch(f"g{number}") for number in range(8)]
    await clients[0].change(cluster.request("declare_queue", name="q"))
    await until(lambda: all(len(client.routers.evaluators()) == 2 for client in clients))
    stopping = asyncio.ensure_future(cluster.stop_one(first))
    while not stopping.done():
        for client in clients:
            assert (await DryRunOfAny(client.routers).route("/", "", "q", {})).queues == ["q"]
    await stopping


async def test_any_router_finds_bindings(cluster: Any, until: Any) -> None:
    """As soon as a change is answered, the one that follows knows as much as the one that writes."""
    await cluster.start_router()
    await cluster.start_router("router-2")
    client = await cluster.watch("g")
    await until(lambda: len(client.routers.evaluators()) == 2)
    await client.change(cluster.request("declare_queue", name="q"))
    async with connect(cluster.settings.address_of("router-2")) as channel:
        follower = router_pb2_grpc.RouterStub(channel)
        for number in range(20):
            asked = router_pb2.FindBindingRequest(virtual_host="/", exchange="amq.direct", routing_key=str(number))
            assert not (await client.find_binding(asked)).is_bound
            await client.change(cluster.request("bind", source="amq.direct", destination="q", routing_key=str(number)))
            assert (await follower.FindBinding(asked)).is_bound
            assert (await client.find_binding(asked)).is_bound
        with pytest.raises(NotFound):
            await client.find_binding(router_pb2.FindBindingRequest(virtual_host="none"))


async def test_a_router_does_not_follow_itself(cluster: Any) -> None:
    """The router that takes the lease over has no place of its own, for which changes would wait when it is gone."""
    for name in ("router", "router-2", "router", "router-2"):
        before = await cluster.start_router(name)
        client = await cluster.watch(f"after {name}")
        await client.change(cluster.request("declare_queue", name=name))
        assert [key for kind, key in cluster.store.records if kind == "watcher" and key.startswith("router-")] == []
        await client.stop()
        await cluster.stop_one(before)


async def test_a_router_that_lost_its_place_evaluates_nothing(cluster: Any) -> None:
    """A router that follows one that has the lease and is silent cannot know what was answered, and says so."""
    first = await cluster.start_router()
    await cluster.start_router("router-2")
    writer, address = cluster.store.holder, cluster.settings.address_of("router")
    async with connect(cluster.settings.address_of("router-2")) as channel:
        follower = router_pb2_grpc.RouterStub(channel)
        # Behind the back of the one that follows: it must not become the one that writes.
        cluster.store.reserved = writer
        await cluster.stop_one(first)
        with silent_listener(cluster.settings.run_folder / "router.sock"):
            cluster.store.hold(writer, address)
            async with asyncio.timeout(60):
                while not await _refused(follower.Route(_to("", "q")), "does not hear"):
                    await asyncio.sleep(0.05)


async def _refused(call: Any, text: str) -> bool:
    try:
        await call
    except grpc.aio.AioRpcError as failure:
        return text in (failure.details() or "")
    return False


async def test_a_store_that_restarts_before_the_router_leaves(cluster: Any, until: Any) -> None:
    """What it had in memory is known to the next router, though the former had no time to put it again."""
    first = await cluster.start_router()
    second = await cluster.start_router("router-2")
    client = await cluster.watch("g1")
    queue = (await client.change(cluster.request("declare_queue", name="q"))).queue
    bound = cluster.request("bind", source="amq.topic", destination="q", routing_key="k")
    await client.change(bound)
    first._lease.on_store_restart = lambda: None
    cluster.store.lose_memory()
    await until(second._follower.lost)
    await cluster.stop_one(first)
    found = await client.change(cluster.request("declare_queue", name="q", passive=True))
    assert found.queue.id == queue.id
    async with connect(cluster.settings.address_of("router-2")) as channel:
        [routed] = (await router_pb2_grpc.RouterStub(channel).Route(_to("amq.topic", "k"))).routed
    assert list(routed.queue_ids) == [queue.id]
    await until(lambda: len([kind for kind, _ in cluster.store.records if kind in ("queue", "binding")]) == 2)


async def test_what_was_put_again_is_not_lost(cluster: Any, until: Any) -> None:
    """The router that writes does that before all else: what it deletes then stays deleted."""
    await cluster.start_router()
    second = await cluster.start_router("router-2")
    client = await cluster.watch("g1")
    await client.change(cluster.request("declare_queue", name="q"))
    cluster.store.lose_memory()
    await until(second._follower.lost)
    await client.change(cluster.request("delete_queue", name="q"))
    assert not second._follower.lost()
