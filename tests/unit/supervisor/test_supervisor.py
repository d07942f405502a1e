from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from services.supervisor import supervisor
from services.supervisor.supervisor import Supervisor
from tests.support.programs import failing, notes, serving, until
from tests.unit.supervisor.conftest import MakeChild

Signals = dict[int, Callable[[], None]]

FOREVER = 3600.0


async def test_up_and_down_in_order(child: MakeChild, tmp_path: Path, signals: Signals) -> None:
    """The ready line comes once all serve; on a signal stages stop from the last to the first, one after the other."""
    ready = asyncio.Event()

    async def when_ready() -> None:
        ready.set()

    stages = [[child(serving(tmp_path, name)) for name in stage] for stage in (["a"], ["b1", "b2"], ["c"])]
    running = asyncio.create_task(Supervisor(stages, when_ready).run())
    await asyncio.wait_for(ready.wait(), 60)
    assert sorted(notes(tmp_path)) == ["a starts", "b1 starts", "b2 starts", "c starts"]
    signals[signal.SIGTERM]()
    assert await asyncio.wait_for(running, 60) == 0
    first, *middle, last = notes(tmp_path)[4:]
    assert (first, set(middle), last) == ("c stops", {"b1 stops", "b2 stops"}, "a stops")


async def test_second_signal_kills(
    child: MakeChild, tmp_path: Path, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second Ctrl-C does not wait for a child's grace to end; the echo of the first is not a second."""
    monkeypatch.setattr(supervisor, "GRACE", FOREVER)
    monkeypatch.setattr(supervisor, "_ECHO", FOREVER)
    deaf = child(serving(tmp_path, "deaf", "deaf"))
    kills = []
    monkeypatch.setattr(deaf, "kill", lambda kill=deaf.kill: kills.append(kill()))
    running = asyncio.create_task(Supervisor([[deaf]], _nothing).run())
    await until((tmp_path / "deaf").exists)
    signals[signal.SIGINT]()
    signals[signal.SIGINT]()
    assert not kills
    monkeypatch.setattr(supervisor, "_ECHO", -1.0)
    signals[signal.SIGINT]()
    assert await asyncio.wait_for(running, 60) == 0
    assert len(kills) == 1


async def test_one_that_is_not_vital(child: MakeChild, tmp_path: Path, signals: Signals) -> None:
    """The stack is ready without a child that is not vital, and goes on without it."""
    ready = asyncio.Event()

    async def when_ready() -> None:
        ready.set()

    stages = [[child(replace(failing(tmp_path, "b"), vital=False))], [child(serving(tmp_path, "a"))]]
    running = asyncio.create_task(Supervisor(stages, when_ready).run())
    await asyncio.wait_for(ready.wait(), 60)
    await until(lambda: notes(tmp_path).count("b fails") > 2)
    assert not running.done()
    signals[signal.SIGTERM]()
    assert await asyncio.wait_for(running, 60) == 0


async def test_one_that_cannot_start_ends_all(
    child: MakeChild, tmp_path: Path, signals: Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """When a child is given up, the others stop, the exit status says so, and the last line why."""
    told = []

    async def when_ready() -> None:
        told.append("ready")

    stages = [[child(serving(tmp_path, "a"))], [child(failing(tmp_path, "b", "cannot, for a reason"))]]
    assert await asyncio.wait_for(Supervisor(stages, when_ready).run(), 60) == 1
    assert notes(tmp_path)[-1] == "a stops"
    assert told == []
    out, err = capfd.readouterr()
    assert "cannot, for a reason" in (out or err).splitlines()[-1]


async def _nothing() -> None:
    pass
