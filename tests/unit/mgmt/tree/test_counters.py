"""What processes have counted, as the tree adds it up."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from services.common.config import Settings
from services.common.metrics.catalogue import messages as m
from services.common.metrics.meters import Meters, family
from services.mgmt.metrics.gather import ProcessMetrics
from services.mgmt.tree import recent
from services.mgmt.tree.counted import BROKER, EXCHANGE, QUEUE
from services.mgmt.tree.counters import Counters, as_kept, grown

_RECEIVED, _ENQUEUED = m.COUNTED_PER_EXCHANGE[0], m.COUNTED_PER_QUEUE[0]


def _told(process: str, counts: dict[str, float], queue: str = "q", exchange: str = "e") -> ProcessMetrics:
    meters = Meters("gateway", process)
    meters.read(m.RECEIVED, lambda: [((protocol,), count) for protocol, count in counts.items()])
    meters.read(_ENQUEUED, lambda: [(("/", queue), 5)])
    meters.read(_RECEIVED, lambda: [(("/", exchange), 7)])
    return ProcessMetrics("gateway", process, True, [family(each) for each in meters.measured(per_object=True)])


class _Gather:
    def __init__(self, *told: ProcessMetrics) -> None:
        self.told = list(told)
        self.asked: list[bool] = []

    async def __call__(self, *, per_object: bool, names: Collection[str]) -> list[ProcessMetrics]:
        self.asked.append(per_object)
        assert {family.name for each in self.told for family in each.families} <= set(names)
        return self.told


def _counters(tmp_path: Path, gather: _Gather, **settings: Any) -> Counters:
    return Counters(gather, Settings(data=tmp_path, **settings))


async def test_all_processes_and_labels_are_added_up(tmp_path: Path) -> None:
    """Whatever the protocol; what nobody tells is left out, and is not 0."""
    found = _counters(tmp_path, _Gather(_told("a", {"AMQP 1.0": 3, "AMQP 0-9-1": 2}), _told("b", {"AMQP 1.0": 4})))
    await found.now()
    told = found.counted(BROKER)
    assert {name: dict(its) for name, its in told.items()} == {"messagesIn": {"a": 5, "b": 4}}
    assert grown(told, {}) == {"messagesIn": 9}


async def test_what_was_reset_is_taken_off_of_each_process(tmp_path: Path) -> None:
    """One that is gone takes nothing from the others, and the next of it begins with nothing."""
    gather = _Gather(_told("a", {"x": 3}), _told("b", {"x": 4}))
    found = _counters(tmp_path, gather)
    await found.now()
    since = as_kept(found.counted(BROKER))
    gather.told = [_told("b", {"x": 6}), _told("c", {"x": 1})]
    await found.now()
    assert grown(found.counted(BROKER), since) == {"messagesIn": 3}


async def test_a_queue_of_which_nothing_was_counted_where_others_are(tmp_path: Path) -> None:
    """Has none; where nobody counts queues apart nothing is known of it."""
    found = _counters(tmp_path, _Gather(_told("a", {}), _told("b", {})), metrics_queues=True)
    assert found.counted(QUEUE, "/", "q") == {}
    await found.fresh_apart()
    assert grown(found.counted(QUEUE, "/", "q"), {}) == {"totalEnqueuedMessages": 10}
    assert grown(found.counted(QUEUE, "/", "other"), {}) == {"totalEnqueuedMessages": 0}


async def test_one_that_is_among_the_others_is_not_known(tmp_path: Path) -> None:
    """There are too many exchanges to be told one by one: those that are have their counts."""
    gather = _Gather(_told("a", {}, exchange="(others)"), _told("b", {}))
    gather.told[0].families[-1].label_values[:] = ["(others)", "(others)"]
    found = _counters(tmp_path, gather)
    await found.now()
    assert found.counted(EXCHANGE, "/", "unknown") == {}
    assert grown(found.counted(EXCHANGE, "/", "e"), {}) == {"messagesIn": 7}


async def test_who_is_asked_how_often(tmp_path: Path) -> None:
    """Once in five seconds, and of single objects nobody where the settings do not want them counted."""
    gather = _Gather()
    found = _counters(tmp_path, gather)
    await found.fresh_apart()
    assert gather.asked == []
    for _ in range(3):
        await found.fresh()
    assert gather.asked == [False]
    await found.now()
    apart = _counters(tmp_path, gather, metrics_exchanges=True)
    for _ in range(3):
        await apart.fresh_apart()
    assert gather.asked == [False, False, True]
    await apart.stop()


async def test_nobody_waits_while_there_are_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of single objects take long to be told: they are asked for before they are too old."""
    monkeypatch.setattr(recent, "_EVERY", 0.01)
    gather = _Gather()
    found = _counters(tmp_path, gather, metrics_queues=True)
    await found.fresh_apart()
    async with asyncio.timeout(60):
        while len(gather.asked) < 3:
            await asyncio.sleep(0.01)
    await found.stop()
