from __future__ import annotations

import os
from pathlib import Path

import pytest

from suites.command import run
from suites.failure import NotRun

LEAVES_A_CHILD = "trap '' INT; setsid sleep 1000 & echo $! >child; wait"


def _state(pid: int) -> str:
    """Its letter in /proc, of which Z is one that ended; Z also when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def test_at_its_time_limit_a_command_is_ended_with_all_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that does not listen to the interrupt, and a process that leads a session of its own."""
    monkeypatch.setattr("suites.command.LAST_WORDS_SECONDS", 0.1)
    assert not run(["sh", "-c", LEAVES_A_CHILD], tmp_path, tmp_path / "log", seconds=3)
    child = int((tmp_path / "child").read_text())
    while _state(child) != "Z":
        os.sched_yield()


def test_what_ends_by_itself_is_in_time(tmp_path: Path) -> None:
    """With any exit status: failed tests are named by the report."""
    assert run(["sh", "-c", "echo said; exit 1"], tmp_path, tmp_path / "log", seconds=30)
    assert (tmp_path / "log").read_text() == "said\n"


def test_a_missing_command_is_named(tmp_path: Path) -> None:
    """A runner that is not installed says why the suite was not run."""
    with pytest.raises(NotRun, match="no-such-runner cannot be started"):
        run(["no-such-runner"], tmp_path, tmp_path / "log", seconds=30)
