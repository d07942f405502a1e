from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.clients.topology_mirror import TopologyMirror
from services.common.errors import BrokerError
from services.common.topology.definitions import Exchange, Queue
from services.common.topology.message import OfHeaders
from services.common.topology.slots import name_of
from services.router.replica import Replica
from services.router.topology.effects import Bound, Effects, News
from services.router.wire import news_frame, record_frames, records_frame, snapshot_frames
from tests.support.topology_bench import new_topology, request
from tests.support.topology_changes import EXCHANGES, HEADERS, KEYS
from tests.support.topology_changes import changes as any_change


def _routes(topology: Any) -> dict[Any, Any]:
    """Every route that there is to ask for, as a gateway would remember it."""
    return {
        (exchange, key): topology.route("/", exchange, key, OfHeaders(HEADERS))
        for exchange, key in product(EXCHANGES, KEYS)
    }


class _Gateway:
    """Remembers every route, and forgets what it is told to."""

    def __init__(self) -> None:
        self.mirror = TopologyMirror()
        self.mirror.listeners.append(self)
        self.routes = {}

    def on_queue(self, definition: Any) -> None:
        pass

    def on_queue_changed(self, definition: Any) -> None:
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


@pytest.mark.fuzz
@given(st.lists(any_change, max_size=25), st.data())
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
        if data.draw(st.booleans()):
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


@pytest.mark.fuzz
@given(st.lists(any_change, max_size=25))
def test_what_happened_adds_up(changes: Any) -> None:
    """Nothing comes into being twice or ends without having been there, and what remains is the topology."""
    topology, effects, there = new_topology(), Effects(), set()
    for change in [request("create_virtual_host", name="/"), *changes]:
        with suppress(BrokerError):
            topology.change(change, effects)
    for created, happened in effects.happened:
        what = replace(happened, policy=b"") if isinstance(happened, Queue) else happened
        assert (what in there) is not created
        there ^= {what}
    records = [key.kind for key, _ in topology.all_records() if key.kind != "policy"]
    assert sorted(_KIND_OF[type(what)] for what in there) == sorted(records)
    assert {queue.id for queue in there if isinstance(queue, Queue)} == set(topology.queues)


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
    assert {name_of(queue): queue for queue in frame.queues} == mirror.by_name
    assert set(topology.virtual_hosts) == mirror.virtual_hosts


@pytest.mark.fuzz
@given(any_change, st.lists(any_change, max_size=10))
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
