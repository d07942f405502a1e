from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.clients.topology_mirror import TopologyMirror
from services.common.errors import BrokerError
from services.common.topology.definitions import Exchange, Queue
from services.router.replica import Replica
from services.router.topology.effects import Bound, Effects, News
from services.router.wire import news_frame, record_frames, records_frame, snapshot_frames
from tests.support.topology_bench import new_topology, request

_QUEUES = ["q1", "q2", ""]
_EXCHANGES = ["d", "f", "t", "h", "amq.direct", "amq.match", ""]
_KEYS = ["k", "k.l", "q1", ""]
_HEADERS = {"a": 1}
_TYPES = {"d": "direct", "f": "fanout", "t": "topic", "h": "headers", "amq.direct": "direct", "amq.match": "headers"}

_tables = st.sampled_from([{}, {}, {"a": 1}, {"a": 2}])
_flag = st.booleans()
_declare_queue = st.builds(
    lambda name, durable, exclusive: request("declare_queue", name=name, durable=durable, exclusive=exclusive),
    st.sampled_from(_QUEUES),
    _flag,
    _flag,
)
_declare_exchange = st.builds(
    lambda name, durable, auto_delete, alternate: request(
        "declare_exchange",
        name=name,
        type=_TYPES.get(name, "direct"),
        durable=durable,
        auto_delete=auto_delete,
        arguments={} if alternate is None else {"alternate-exchange": alternate},
    ),
    st.sampled_from(_EXCHANGES),
    _flag,
    _flag,
    st.none() | st.sampled_from(_EXCHANGES),
)


def _bindings(kind: Any) -> Any:
    def build(source: Any, destination: Any, key: Any, table: Any) -> Any:
        to_exchange = destination in _EXCHANGES
        fields = {"source": source, "destination": destination, "to_exchange": to_exchange, "routing_key": key}
        return request(kind, **fields, arguments=table)

    destinations = st.sampled_from(["q1", "q2", "d", "f", "t", "h"])
    return st.builds(build, st.sampled_from(_EXCHANGES), destinations, st.sampled_from([*_KEYS, "k.*", "#"]), _tables)


_changes = st.one_of(
    _declare_queue,
    _declare_exchange,
    _bindings("bind"),
    _bindings("bind"),
    _bindings("unbind"),
    st.builds(lambda name: request("delete_queue", name=name), st.sampled_from(_QUEUES)),
    st.builds(lambda name: request("delete_exchange", name=name), st.sampled_from(_EXCHANGES)),
    st.builds(lambda name: request("create_virtual_host", name=name), st.sampled_from(["/", "v"])),
    st.builds(lambda name: request("delete_virtual_host", name=name), st.sampled_from(["/", "v"])),
    st.just(request("close_connection")),
)


def _routes(topology: Any) -> dict[Any, Any]:
    """Every route that there is to ask for, as a gateway would remember it."""
    return {
        (exchange, key): topology.route("/", exchange, key, lambda: _HEADERS)
        for exchange, key in product(_EXCHANGES, _KEYS)
    }


class _Gateway:
    """Remembers every route, and forgets what it is told to."""

    def __init__(self) -> None:
        self.mirror = TopologyMirror()
        self.mirror.listeners.append(self)
        self.routes = {}

    def on_queue(self, definition: Any) -> None:
        pass

    def on_queue_deleted(self, definition: Any) -> None:
        pass

    def on_reset(self) -> None:
        self.routes.clear()

    def on_virtual_host_deleted(self, name: str) -> None:
        pass

    def on_place(self) -> None:
        pass

    def on_forget(self, forget: Any) -> None:
        for exchange, key in list(self.routes):
            if exchange == forget.exchange and (forget.all_keys or key == forget.routing_key):
                del self.routes[exchange, key]


@settings(max_examples=200, deadline=None)
@given(st.lists(_changes, max_size=25), st.data())
def test_records_and_news_say_everything(changes: Any, data: Any) -> None:
    """After any changes the records restore the same topology, what a gateway has not forgotten is true, and a router
    that was told the records evaluates in the same way.
    """
    topology, kept, gateway, unsent = new_topology(), {}, _Gateway(), News()
    replica = Replica(new_topology)
    for change in [request("create_virtual_host", name="/"), *changes]:
        effects = Effects()
        with suppress(BrokerError):
            topology.change(change, effects)
        kept = {key: record for key, record in (kept | effects.records).items() if record}
        effects.news.records = effects.records
        unsent.add(effects.news)
        if data.draw(_flag):
            gateway.mirror.take(news_frame(1, unsent))
            replica.take(records_frame(1, unsent))
            _check_replica(topology, replica)
            unsent = News()
            if "/" in topology.virtual_hosts:
                now = _routes(topology)
                assert gateway.routes.items() <= now.items()
                gateway.routes = now
            else:
                gateway.routes.clear()
    gateway.mirror.take(news_frame(1, unsent))
    _check_the_same(topology, kept, gateway.mirror)


@settings(max_examples=200, deadline=None)
@given(st.lists(_changes, max_size=25))
def test_what_happened_adds_up(changes: Any) -> None:
    """Nothing comes into being twice or ends without having been there, and what remains is the topology."""
    topology, effects, there = new_topology(), Effects(), set()
    for change in [request("create_virtual_host", name="/"), *changes]:
        with suppress(BrokerError):
            topology.change(change, effects)
    for created, what in effects.happened:
        assert (what in there) is not created
        there ^= {what}
    records = [key.kind for key, _ in topology.all_records()]
    assert sorted(_KIND_OF[type(what)] for what in there) == sorted(records)
    assert {queue for queue in there if isinstance(queue, Queue)} == set(topology.queues.values())


def _check_replica(topology: Any, replica: Any) -> None:
    assert dict(replica.topology.all_records()) == dict(topology.all_records())
    assert _routes(replica.topology) == _routes(topology)
    late = Replica(new_topology)
    for frame in record_frames(1, topology.all_records(), 1):
        late.take(frame)
    assert _routes(late.topology) == _routes(topology)


_KIND_OF = {str: "virtual_host", Exchange: "exchange", Queue: "queue", Bound: "binding"}


def _check_the_same(topology: Any, kept: Any, mirror: Any) -> None:
    assert kept == dict(topology.all_records())
    restored = new_topology()
    assert not restored.restore((key.kind, key.key, record.value) for key, record in kept.items())
    assert dict(restored.all_records()) == kept
    assert _routes(restored) == _routes(topology)
    [frame] = snapshot_frames(1, topology.virtual_hosts, topology.queues.values(), 1)
    assert {queue.id: queue for queue in frame.queues} == mirror.queues
    assert {(queue.virtual_host, queue.name): queue for queue in frame.queues} == mirror.by_name
    assert set(topology.virtual_hosts) == mirror.virtual_hosts


@settings(max_examples=200, deadline=None)
@given(_changes, st.lists(_changes, max_size=10))
def test_what_is_refused_changes_nothing(change: Any, before: Any) -> None:
    """A change that raises has no effects and leaves everything as it was."""
    topology = new_topology()
    for each in [request("create_virtual_host", name="/"), *before]:
        with suppress(BrokerError):
            topology.change(each, Effects())
    records, routes, effects = dict(topology.all_records()), _routes(topology), Effects()
    try:
        topology.change(change, effects)
    except BrokerError:
        assert effects == Effects()
        assert dict(topology.all_records()) == records
        assert _routes(topology) == routes
