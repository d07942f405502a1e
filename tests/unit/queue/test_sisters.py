"""Queue processes that start together share all partitions from the start."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from services.queue.partitions import sisters
from services.queue.partitions.sisters import Together, missing, sisters_of, together
from services.queue.service import Service
from tests.support.queue_house import House


def test_sisters_are_known_by_name() -> None:
    """`hopline up` numbers its queue processes; one with another name expects no others."""
    assert sisters_of("queue-2", 3) == ["queue-1", "queue-3"]
    assert sisters_of("queue-1", 1) == []
    assert sisters_of("queue-4f0c6ab1", 2) == []


def test_processes_that_are_missing() -> None:
    """A sister process is there when any run of it is; queue-10 is not queue-1."""
    assert missing(["queue-1", "queue-3"], {"queue-10-aa", "queue-2-bb", "queue-3-cc"}) == {"queue-1"}


def owned(service: Service) -> set[int]:
    return set(service._host.registry.partitions)


@pytest.mark.parametrize("placement", ["fair", "load"])
async def test_a_share_is_left_to_later_processes(tmp_path: Path, placement: str) -> None:
    """The first of two takes its half and is ready; the second one finds the other half, and nothing is moved."""
    house = House(tmp_path, lease_ttl_ms=60_000, queue_processes=2, placement=placement)
    await house.start()
    try:
        half = owned(house.queues["queue-1"])
        assert len(half) == 4
        second = await house.start_queue("queue-2")
        assert owned(second) == set(range(8)) - half
        assert owned(house.queues["queue-1"]) == half
    finally:
        await house.stop()


def test_who_is_waited_for() -> None:
    """All that have joined for a while, and longer the sisters, by name, whether they have joined or not."""
    its = Together(1.0, ["queue-2", "queue-3"], longest=5.0)
    assert its.begin(10.0) == (1.0, 5.0)
    me, joined = {"queue-1-aa"}, {"queue-2-bb", "other-cc"}
    assert its.joining(10.9, me, joined) == {"queue-2-bb", "other-cc", "queue-3"}
    assert its.joining(11.0, me, joined) == {"queue-2", "queue-3"}
    assert its.joining(14.9, me | {"queue-2-bb"}, joined) == {"queue-3"}
    assert its.joining(15.0, me, joined) == set()


def epochs(service: Service) -> set[int]:
    return {partition.epoch for partition in service._host.registry.partitions.values()}


async def test_a_sister_that_comes_much_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a supervisor runs it is sure to come, and finds its share: nothing that was taken is handed over."""
    monkeypatch.setattr(sisters, "_SURE", 600.0)
    house = House(tmp_path, lease_ttl_ms=60_000, queue_processes=2)
    house.settings.run_folder.mkdir(parents=True, exist_ok=True)
    (house.settings.run_folder / "supervisor.pid").write_text(f"{os.getpid()}\n")
    lock = os.open(house.settings.run_folder / "supervisor.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    await house.start()
    try:
        first = house.queues["queue-1"]
        its = first._partitions
        its._together._began -= 60.0  # the time passes in which anybody is waited for
        leases = its._leases
        assert leases is not None
        since = leases._since
        its._look_again()
        await (await house.link()).until(lambda: leases._since > since)  # the answer was acted upon
        assert len(owned(first)) == 4
        second = await house.start_queue("queue-2")
        assert len(owned(second)) == 4
        assert owned(first) | owned(second) == set(range(8))
        assert epochs(first) | epochs(second) == {1}
    finally:
        os.close(lock)
        await house.stop()


@pytest.mark.parametrize("pid", ["", "words", "4194305", "-1", "0", "9" * 30, pytest.param(f"{os.getpid()}", id="own")])
def test_who_was_supervised_once(tmp_path: Path, pid: str) -> None:
    """Waits no longer than others do: a killed supervisor leaves its files, and perhaps its number to a stranger."""
    (tmp_path / "supervisor.pid").write_text(pid)
    (tmp_path / "supervisor.lock").touch()
    assert together("queue-1", 2, 1.0, tmp_path).begin(0.0) == (1.0, 1.0)
    assert together("queue-1", 2, 1.0, tmp_path / "nothing").begin(0.0) == (1.0, 1.0)


async def test_a_share_is_not_left_for_long(tmp_path: Path) -> None:
    """A process that is alone after half of a lease's time takes everything, without waiting for a renewal."""
    house = House(tmp_path, lease_ttl_ms=1000, queue_processes=2)
    await house.start()
    try:
        link = await house.link()
        await link.until(lambda: len(owned(house.queues["queue-1"])) == 8)
    finally:
        await house.stop()
