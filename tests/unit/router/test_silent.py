"""Gateways that fall silent are on record for a while, if they may stand still with all their clients."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.common.clients.topology import TopologyClient
from services.common.grpc_channel import connect
from services.common.watchers import RECORD_KIND, SILENT_KIND
from services.router import silent
from services.router.topology.effects import Effects
from services.router.watchers import ExpectedWatcher
from services.rpc import router_pb2, router_pb2_grpc


class _StandingStill:
    """A watcher that says who it is, and nothing more."""

    def __init__(self, cluster: Any, member: str, role: str = "gateway") -> None:
        self.channel = connect(cluster.settings.address_of("router"))
        self.call = router_pb2_grpc.RouterStub(self.channel).Watch()
        self.member, self.role = member, role

    async def attach(self) -> None:
        await self.call.write(router_pb2.WatcherFrame(member=self.member, role=self.role, connections="7."))
        await self.call.read()


async def _lost(cluster: Any, until: Any, member: str) -> None:
    await until(lambda: (RECORD_KIND, member) in cluster.store.records)
    await until(lambda: (RECORD_KIND, member) not in cluster.store.records)


def _silent(cluster: Any) -> set[str]:
    return {key for kind, key in cluster.store.records if kind == SILENT_KIND}


async def test_one_that_stands_still(cluster: Any, until: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It loses its place, and is on record as silent from that moment until owners do not wait any more."""
    monkeypatch.setattr(silent, "_KEPT", 1.0)
    await cluster.start_router()
    watcher = _StandingStill(cluster, "g2")
    await watcher.attach()
    await _lost(cluster, until, "g2")
    assert _silent(cluster) == {"g2"}
    (put,) = [put for put in cluster.store.puts if any(each.kind == SILENT_KIND for each in put.puts)]
    assert [each.kind for each in put.deletes] == [RECORD_KIND]
    await until(lambda: not _silent(cluster))
    await watcher.channel.close()


async def test_one_that_goes_on(cluster: Any, until: Any) -> None:
    """When it has a place again, it is not on record as silent any more."""
    await cluster.start_router()
    watcher = _StandingStill(cluster, "g2")
    await watcher.attach()
    await _lost(cluster, until, "g2")
    client: TopologyClient = await cluster.watch("g2")
    await until(client.has_place)
    assert _silent(cluster) == set()
    await watcher.channel.close()


async def test_one_that_dies(cluster: Any, until: Any) -> None:
    """Its stream breaks, and it opens no other: its clients are gone, and nobody waits for them."""
    await cluster.start_router()
    watcher = _StandingStill(cluster, "g2")
    await watcher.attach()
    watcher.call.cancel()
    await watcher.channel.close()
    await _lost(cluster, until, "g2")
    assert _silent(cluster) == set()


async def test_queue_processes(cluster: Any, until: Any) -> None:
    """They have no clients."""
    await cluster.start_router()
    watcher = _StandingStill(cluster, "q2", role="queue")
    await watcher.attach()
    await _lost(cluster, until, "q2")
    assert _silent(cluster) == set()
    await watcher.channel.close()


async def test_of_a_former_router(cluster: Any, until: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next router takes it off the record; and has one on record that has not come to it, and may stand still."""
    await cluster.start_router()
    first, second = _StandingStill(cluster, "g2"), _StandingStill(cluster, "g3")
    await first.attach()
    await _lost(cluster, until, "g2")
    await second.attach()
    await until(lambda: (RECORD_KIND, "g3") in cluster.store.records)
    await cluster.stop_router()
    monkeypatch.setattr(silent, "_KEPT", 1.0)
    await cluster.start_router()
    await _lost(cluster, until, "g3")
    assert "g3" in _silent(cluster)
    await until(lambda: not _silent(cluster))
    for each in (first, second):
        await each.channel.close()
    await asyncio.sleep(0)


def test_decided_twice() -> None:
    """A change that failed beside others is decided again: it takes the same off the record, until that is kept."""
    now = 0.0
    there = silent.Silent(lambda: now)
    there.fell([ExpectedWatcher("g2", "gateway", "7.")], Effects())
    assert there.over() == []
    now = 10.0
    for _ in range(2):
        effects = Effects()
        there.take_off(there.over(), effects)
        assert list(effects.records.items()) == [((SILENT_KIND, "g2"), None)]
    there.forget(["g2"])
    assert there.over() == []
