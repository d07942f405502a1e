from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from services.common.supervisor.child import describe
from tests.support.programs import failing, notes, serving, until
from tests.unit.supervisor.conftest import MakeChild


async def test_runs_and_stops(child: MakeChild, tmp_path: Path) -> None:
    """A child is started, found serving, has its pid on file, and ends on SIGTERM."""
    one = child(serving(tmp_path, "one"))
    one.start()
    await asyncio.wait_for(one.serving.wait(), 10)
    assert (tmp_path / "one.pid").read_text().strip() == (tmp_path / "one").read_text()
    await one.stop(5)
    assert notes(tmp_path) == ["one starts", "one stops"]
    assert one.ended.done()


async def test_restarted_at_once(child: MakeChild, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A child that is killed is started again at once, and one line says how it ended."""
    one = child(serving(tmp_path, "one"))
    one.start()
    await asyncio.wait_for(one.serving.wait(), 10)
    os.kill(int((tmp_path / "one").read_text()), signal.SIGKILL)
    died = time.monotonic()
    await until(lambda: notes(tmp_path).count("one starts") == 2)
    assert time.monotonic() - died < 2
    await one.stop(5)
    assert "".join(capfd.readouterr()).count("killed by SIGKILL") == 1


async def test_given_up(child: MakeChild, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A child that cannot start is tried five times, then its end is final and says the exit status."""
    one = child(failing(tmp_path, "one", 3))
    one.start()
    await asyncio.wait_for(one.ended, 20)
    assert notes(tmp_path) == ["one fails"] * 5
    assert "exit status 3" in "".join(capfd.readouterr())


async def test_deaf_child_is_killed(child: MakeChild, tmp_path: Path) -> None:
    """Who ignores SIGTERM is killed when its grace is over."""
    one = child(serving(tmp_path, "one", "deaf"))
    one.start()
    await asyncio.wait_for(one.serving.wait(), 10)
    pid = int((tmp_path / "one").read_text())
    await asyncio.wait_for(one.stop(0.3), 5)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_stopped_between_restarts(child: MakeChild, tmp_path: Path) -> None:
    """A stop during the pause before a restart does not wait for it, and nothing is started any more."""
    one = child(failing(tmp_path, "one"))
    one.start()
    await until(lambda: len(notes(tmp_path)) == 4)
    await asyncio.sleep(0.1)
    await asyncio.wait_for(one.stop(5), 0.5)
    assert len(notes(tmp_path)) == 4


async def test_stopped_while_starting(child: MakeChild, tmp_path: Path) -> None:
    """A stop right after the start leaves no process behind."""
    one = child(serving(tmp_path, "one", "deaf"))
    one.start()
    await asyncio.sleep(0)
    await asyncio.wait_for(one.stop(0.5), 5)
    assert one.ended.done()


async def test_output_is_told_apart(child: MakeChild, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Lines of a child's stderr come through as they are, behind its name."""
    one = child(serving(tmp_path, "one"))
    one.start()
    await asyncio.wait_for(one.serving.wait(), 10)
    await one.stop(5)
    assert "one      | hello from one\n" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("status", "words"), [(0, "exit status 0"), (-9, "killed by SIGKILL"), (-63, "killed by signal 63")]
)
def test_describe(status: int, words: str) -> None:
    """A return code is said in words."""
    assert describe(status) == words
