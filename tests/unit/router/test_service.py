from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
import pytest
from structlog.testing import capture_logs

from services.common.clients.topology import TopologyClient
from services.common.errors import BrokerError, NotFound, PreconditionFailed
from services.common.grpc_channel import connect, is_serving
from services.common.limits import QUEUES, VIRTUAL_HOST, Limited, Subject, record_of
from services.common.topology.slots import SlotName
from services.gateway.routing.bindings import Bindings
from services.rpc import router_pb2, router_pb2_grpc
from tests.support.silent_listener import silent_listener


async def test_first_start_creates_the_virtual_host_slash(cluster: Any) -> None:
    """On an empty store the router makes virtual host "/" with its exchanges, and says that it serves."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    assert client.virtual_hosts == {"/"}
    assert await is_serving(cluster.settings.address_of("router"))
    async with connect(cluster.settings.address_of("router")) as channel:
        reply = await router_pb2_grpc.RouterStub(channel).Describe(router_pb2.DescribeRequest(virtual_host="/"))
    assert {"", "amq.direct", "amq.topic", "amq.headers"} <= {exchange.name for exchange in reply.exchanges}


async def test_the_limit_of_a_virtual_host_holds_from_the_first_moment(cluster: Any) -> None:
    """A router that writes serves when it knows the limits, however late it hears of them."""
    limited = record_of(Limited(Subject(VIRTUAL_HOST, "/"), {QUEUES: 1}))
    cluster.store.records[limited.kind, limited.key] = limited
    cluster.store.tells.clear()
    starting = asyncio.ensure_future(cluster.start_router())
    await asyncio.sleep(0.3)
    assert not starting.done()
    cluster.store.tells.set()
    await starting
    client = await cluster.watch("g1")
    await client.change(cluster.request("declare_queue", name="first"))
    with pytest.raises(BrokerError, match="limit"):
        await client.change(cluster.request("declare_queue", name="second"))


async def test_a_declared_queue_is_known_to_every_watcher_before_the_answer(cluster: Any) -> None:
    """When Change returns, each watcher has the definition already."""
    await cluster.start_router()
    first, second = await cluster.watch("g1"), await cluster.watch("q1", role="queue", prefix="")
    reply = await first.change(cluster.request("declare_queue", name="orders"))
    assert reply.created
    assert first.by_name[SlotName("/", "orders")].id == second.by_name[SlotName("/", "orders")].id == reply.queue.id


async def test_typed_errors_cross_the_wire(cluster: Any) -> None:
    """A refused change raises its own class at the client."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    with pytest.raises(NotFound, match="no queue 'none' in vhost '/'"):
        await client.change(cluster.request("declare_queue", name="none", passive=True))
    await client.change(cluster.request("declare_queue", name="q"))
    with pytest.raises(PreconditionFailed, match="inequivalent arg 'durable'"):
        await client.change(cluster.request("declare_queue", name="q", durable=True))


async def test_route_answers_in_order_and_says_what_is_wrong(cluster: Any) -> None:
    """Each message gets its own answer; properties that cannot be read are a typed error, not a broken router."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    reply = await client.change(cluster.request("declare_queue", name="q"))
    found, unknown, elsewhere = (
        await client.route(
            [
                router_pb2.Message(virtual_host="/", routing_key="q"),
                router_pb2.Message(virtual_host="/", exchange="none"),
                router_pb2.Message(virtual_host="none"),
            ]
        )
    ).routed
    assert list(found.queue_ids) == [reply.queue.id]
    assert unknown.unknown_exchange
    assert elsewhere.unknown_virtual_host
    with pytest.raises(BrokerError):
        await client.route([router_pb2.Message(virtual_host="/", exchange="amq.match", format="no such format")])


class _Silent:
    """A watcher by hand, which acknowledges only when told."""

    def __init__(self, cluster: Any, member: Any, role: str = "gateway") -> None:
        self.channel = connect(cluster.settings.address_of("router"))
        self.call = router_pb2_grpc.RouterStub(self.channel).Watch()
        self.member = member
        self.role = role

    async def attach(self) -> router_pb2.TopologyFrame:
        await self.call.write(router_pb2.WatcherFrame(member=self.member, role=self.role, connections=self.member))
        frame = await self.call.read()
        await self.acknowledge(frame.version)
        return frame

    async def acknowledge(self, version: Any) -> None:
        await self.call.write(router_pb2.WatcherFrame(acknowledged=version))


async def test_change_waits_for_every_acknowledgement(cluster: Any) -> None:
    """A change is not answered until the slowest watcher that has a place has acknowledged it."""
    await cluster.start_router()
    client, slow = await cluster.watch("g1"), _Silent(cluster, "slow")
    await slow.attach()
    change = asyncio.ensure_future(client.change(cluster.request("declare_queue", name="q")))
    frame = await slow.call.read()
    assert [queue.name for queue in frame.queues] == ["q"]
    await asyncio.sleep(0.1)
    assert not change.done()
    await slow.acknowledge(frame.version)
    assert (await change).version == frame.version
    await slow.channel.close()


async def test_a_silent_watcher_loses_its_place(cluster: Any, until: Any, lost_places: dict[str, str]) -> None:
    """A change waits for a watcher that says nothing until that has lost its place, and then its stream is ended."""
    await cluster.start_router()
    client, silent = await cluster.watch("g1"), _Silent(cluster, "silent")
    await silent.attach()
    with capture_logs() as logged:
        await client.change(cluster.request("declare_queue", name="q"))
    assert lost_places["silent"] == "silent"
    told = [(line["log_level"], line["member"]) for line in logged if "no place" in line["event"] and "do" in line]
    assert told == [("warning", "silent")]
    await until(client.has_place)
    await until(lambda: ("watcher", "silent") not in cluster.store.records)
    assert [queue.name for frame in [await silent.call.read()] for queue in frame.queues] == ["q"]
    with pytest.raises(grpc.aio.AioRpcError):
        await silent.call.read()
    await silent.channel.close()


async def test_lost_place_takes_its_exclusive_queues(cluster: Any, until: Any) -> None:
    """Exclusive queues of a watcher's connections go when it does not come back; others stay."""
    await cluster.start_router()
    client, silent = await cluster.watch("g1"), _Silent(cluster, "g2/")
    for connection, name in (("g1/1", "mine"), ("g2/1", "theirs")):
        await client.change(cluster.request("declare_queue", connection=connection, name=name, exclusive=True))
    await silent.attach()
    await until(lambda: SlotName("/", "theirs") not in client.by_name)
    assert SlotName("/", "mine") in client.by_name
    await silent.channel.close()


async def test_leaving_gives_the_place_up_at_once(cluster: Any, until: Any, lost_places: dict[str, str]) -> None:
    """A watcher that stops cleanly has no place any more because it said so, and its exclusive queues go."""
    await cluster.start_router()
    client, other = await cluster.watch("g1"), await cluster.watch("g2")
    await other.change(cluster.request("declare_queue", connection="g2/1", name="theirs", exclusive=True))
    await other.stop()
    await until(lambda: SlotName("/", "theirs") not in client.by_name)
    assert lost_places["g2"] == "left"
    assert not other.has_place()


async def test_closed_connection_takes_its_exclusive_queues(cluster: Any) -> None:
    """CloseConnection deletes the exclusive queues of that connection alone."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    for connection in ("g1/1", "g1/2"):
        await client.change(cluster.request("declare_queue", connection=connection, name=connection, exclusive=True))
    await client.change(cluster.request("close_connection", connection="g1/1"))
    assert set(client.by_name) == {SlotName("/", "g1/2")}


async def test_many_changes_are_written_in_few_groups(cluster: Any) -> None:
    """1000 declarations at once do not become 1000 writes."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    cluster.store.delay = 0.01
    before = len(cluster.store.puts)
    declares = (cluster.request("declare_queue", name=f"q{number}", durable=True) for number in range(1000))
    await asyncio.gather(*map(client.change, declares))
    assert len(client.queues) == 1000
    assert len(cluster.store.puts) - before < 200


async def test_restart_keeps_everything_that_the_store_has(cluster: Any) -> None:
    """A new router knows durable and transient things, and gives no queue id again."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    await client.change(cluster.request("declare_queue", name="durable", durable=True))
    await client.change(cluster.request("declare_queue", name="transient"))
    await client.change(cluster.request("bind", source="amq.topic", destination="transient", routing_key="a.*"))
    known = dict(client.queues)
    await cluster.stop_router()
    await cluster.start_router()
    reply = await client.change(cluster.request("declare_queue", name="later"))
    assert reply.queue.id not in known
    assert known.items() <= client.queues.items()
    message = router_pb2.Message(virtual_host="/", exchange="amq.topic", routing_key="a.b")
    [routed] = (await client.route([message])).routed
    assert list(routed.queue_ids) == [client.by_name[SlotName("/", "transient")].id]


async def test_next_router_waits_for_the_watchers_of_the_former(cluster: Any, lost_places: dict[str, str]) -> None:
    """A gateway that has not come back may still route by the old topology: changes wait for its place."""
    await cluster.start_router()
    client, silent = await cluster.watch("g1"), _Silent(cluster, "silent")
    await silent.attach()
    await cluster.stop_router()
    await silent.channel.close()
    assert "silent" not in lost_places
    await cluster.start_router()
    await client.change(cluster.request("declare_queue", name="q"))
    assert lost_places["silent"] == "silent"


async def test_exclusive_queues_of_gateways_that_never_came_back(cluster: Any, until: Any) -> None:
    """After a restart, exclusive queues whose gateway stays away are deleted, those of present gateways are not."""
    await cluster.start_router()
    client, gone = await cluster.watch("g1"), _Silent(cluster, "g2/")
    await gone.attach()
    for connection in ("g1/1", "g2/1", "nobody/1"):
        change = cluster.request("declare_queue", connection=connection, name=connection, exclusive=True, durable=True)
        await client.change(change)
    await cluster.stop_router()
    await gone.channel.close()
    await cluster.start_router()
    await until(lambda: set(client.by_name) == {SlotName("/", "g1/1")})


async def test_transient_records_are_put_again_after_a_store_restart(cluster: Any, until: Any) -> None:
    """A store that lost its memory is given it again."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    await client.change(cluster.request("declare_queue", name="q"))
    key = ("queue", '["/", "q"]')
    assert cluster.store.records[key].transient
    cluster.store.lose_memory()
    await until(lambda: key in cluster.store.records and ("watcher", "g1") in cluster.store.records)


async def test_router_that_lost_its_lease_ends(cluster: Any) -> None:
    """Another holder of the lease makes this process end, and its changes are not answered as done."""
    await cluster.start_router()
    cluster.store.holder, cluster.store.epoch = "another", cluster.store.epoch + 1
    async with asyncio.timeout(60):
        await cluster.lost.wait()


class _Notes:
    """A listener that writes down what it is told."""

    def __init__(self) -> None:
        self.seen = []

    def on_queue(self, definition: Any) -> None:
        self.seen.append(("queue", definition.name))

    def on_queue_changed(self, definition: Any) -> None:
        self.seen.append(("changed", definition.name))

    def on_queue_deleted(self, definition: Any) -> None:
        self.seen.append(("deleted", definition.name))

    def on_forget(self, forget: Any) -> None:
        self.seen.append(("forget", forget.exchange, "*" if forget.all_keys else forget.routing_key))

    def on_reset(self) -> None:
        self.seen.append(("reset",))

    def on_virtual_host_deleted(self, name: str) -> None:
        self.seen.append(("virtual host deleted", name))

    def on_place(self) -> None:
        pass


async def test_listeners_are_told_before_the_change_is_answered(cluster: Any) -> None:
    """Queues, deletions and what to forget reach listeners in time; the snapshot resets."""
    await cluster.start_router()
    client = TopologyClient(cluster.store_client, "g1", "gateway", "g1/")
    notes = _Notes()
    client.listeners.append(notes)
    await client.start()
    assert notes.seen == [("reset",)]
    notes.seen.clear()
    reply = await client.change(cluster.request("declare_queue", name="q"))
    assert notes.seen == [("queue", "q"), ("forget", "", "q")]
    notes.seen.clear()
    await client.change(cluster.request("bind", source="amq.fanout", destination="q"))
    assert notes.seen == [("forget", "amq.fanout", "*")]
    notes.seen.clear()
    await client.change(router_pb2.ChangeRequest(delete_queue=router_pb2.DeleteQueue(queue_id=reply.queue.id)))
    assert set(notes.seen) == {("deleted", "q"), ("forget", "", "q"), ("forget", "amq.fanout", "*")}
    await client.stop()


async def test_watchers_that_evaluate_know_a_binding_before_it_is_answered(cluster: Any) -> None:
    """Its own client's and others', from the first snapshot on; so does one that comes later."""
    await cluster.start_router()
    copies = [Bindings(), Bindings()]
    clients = [
        TopologyClient(cluster.store_client, f"g{at}", "gateway", f"g{at}/", copy=each)
        for at, each in enumerate(copies)
    ]

    def bound(copy: Bindings) -> list[str]:
        return [each.routing_key for each in (copy.sources("/") or {})["amq.topic"].bindings]

    await clients[0].start()
    await clients[0].change(cluster.request("declare_queue", name="q"))
    for key in ("a.#", "b.#"):
        await clients[0].change(cluster.request("bind", source="amq.topic", destination="q", routing_key=key))
        assert bound(copies[0])[-1] == key
        await clients[1].start() if key == "a.#" else None
        assert bound(copies[1]) == bound(copies[0])
    await clients[1].change(cluster.request("unbind", source="amq.topic", destination="q", routing_key="a.#"))
    assert bound(copies[0]) == bound(copies[1]) == ["b.#"]
    for client in clients:
        await client.stop()


@pytest.mark.parametrize("ttl_ms", [4000])  # longer than a busy machine stops a process
async def test_place_is_kept_while_the_router_is_gone(cluster: Any, until: Any) -> None:
    """A refused connection means that nothing changes: routes stay usable beyond place_ttl, then come anew."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    await until(client.has_place)
    notes = _Notes()
    client.listeners.append(notes)
    await cluster.stop_router()
    for _ in range(50):
        await asyncio.sleep(0.1)
        assert client.has_place()
    await cluster.start_router()
    await until(lambda: ("reset",) in notes.seen)
    assert client.has_place()


async def test_place_is_lost_when_the_router_is_silent(cluster: Any, until: Any) -> None:
    """A router that has its lease, accepts and says nothing may have given the place away."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    await until(client.has_place)
    writer = cluster.store.holder
    await cluster.stop_router()
    address = cluster.settings.address_of("router")
    with silent_listener(cluster.settings.run_folder / "router.sock"):
        cluster.store.hold(writer, address)
        await until(lambda: not client.has_place())
        await client.stop()


@pytest.mark.parametrize("ttl_ms", [4000])  # longer than a busy machine stops a process
async def test_place_is_kept_while_a_silent_router_has_no_lease(cluster: Any, until: Any) -> None:
    """A router whose lease has run out answers no change, so routes stay usable though it cannot be told from alive."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    await until(client.has_place)
    await cluster.stop_router()
    with silent_listener(cluster.settings.run_folder / "router.sock"):
        for _ in range(50):
            await asyncio.sleep(0.1)
            assert client.has_place()
        await client.stop()


async def test_no_place_outlives_the_lease_of_the_router_that_gave_it(cluster: Any, until: Any) -> None:
    """A router that cannot renew its lease confirms no place any more: another one may count by then."""
    await cluster.start_router()
    client = await cluster.watch("g1")
    await until(client.has_place)
    cluster.store.silent = True
    await until(lambda: not client.has_place())
    cluster.store.silent = False
    await until(client.has_place)


async def test_watchers_are_known_to_the_router_that_comes_with_the_next_store(
    cluster: Any, lost_places: dict[str, str]
) -> None:
    """When store and router die together, the next router waits for gateways that may still route as before."""
    await cluster.start_router()
    client, silent = await cluster.watch("g1"), _Silent(cluster, "silent")
    await silent.attach()
    await cluster.stop_router()
    cluster.store.lose_memory()
    assert "silent" not in lost_places
    await cluster.start_router()
    await client.change(cluster.request("declare_queue", name="q"))
    assert lost_places["silent"] == "silent"
    await silent.channel.close()
