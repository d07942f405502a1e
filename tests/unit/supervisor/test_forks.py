"""Programs that are forked, by a supervisor of its own (tests/support/forking.py)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.stack import wait_until

ROOT = Path(__file__).parents[3]


class Supervisor:
    """The process, and what it is asked for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def order(self, *arguments: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(" ".join(arguments) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout
        told: dict[str, Any] = json.loads(self.process.stdout.readline())
        return told

    def runs(self, *arguments: str) -> dict[str, Any]:
        self.order(*arguments)
        return self.answer()

    def sleeper(self, folder: Path) -> tuple[int, int]:
        """Process ids of a program that runs, and of what it was forked from."""
        self.order("sleep", str(folder))
        file = folder / "sleeper"
        wait_until(lambda: file.exists() and len(file.read_text().split()) == 2, 30, "program")
        pid, server = file.read_text().split()
        return int(pid), int(server)


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    environment = {**os.environ, "SECRET": "s3cret", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.forking"], env=environment, cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        yield Supervisor(process)
        process.kill()


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_it_is_as_if_it_were_executed(supervisor: Supervisor) -> None:
    """It has its own arguments, title and session, the environment that it was given and shows no other, no input."""
    ended = supervisor.runs("look")
    seen = json.loads(ended["said"])
    assert seen["argv"] == ["hopline", "look"]
    assert seen["title"] == "hopline look"
    assert seen["environment"]["TOLD"] == "this"
    assert "SECRET" not in seen["environment"]
    assert "s3cret" not in seen["shown"]
    assert (seen["session"], seen["input"], ended["status"]) == (True, "", 0)
    assert seen["parent"] == supervisor.process.pid


def test_nothing_of_the_supervisor_s_is_open(supervisor: Supervisor) -> None:
    """It can write to its own pipe, and the supervisor has as much open after it as before."""
    supervisor.runs("look")
    before = supervisor.runs("look")
    null, out, err, *others = json.loads(before["said"])["descriptors"]
    assert null == os.devnull
    assert out == err
    assert others == []
    assert supervisor.runs("look")["opened"] == before["opened"]


def test_it_shares_what_was_imported(supervisor: Supervisor) -> None:
    """What was prepared once is there in each."""
    assert json.loads(supervisor.runs("look")["said"])["prepared"]


@pytest.mark.parametrize("status", [0, 3])
def test_exit_status(supervisor: Supervisor, status: int) -> None:
    """The supervisor hears how it ended."""
    assert supervisor.runs("exit", str(status))["status"] == status


def test_killed(supervisor: Supervisor, tmp_path: Path) -> None:
    """The supervisor hears by which signal it was killed, and knows its process id."""
    pid, _ = supervisor.sleeper(tmp_path)
    os.kill(pid, signal.SIGKILL)
    ended = supervisor.answer()
    assert (ended["pid"], ended["status"]) == (pid, -signal.SIGKILL)


def test_all_end_with_a_killed_supervisor(supervisor: Supervisor, tmp_path: Path) -> None:
    """When the supervisor gets kill -9, what it forked is gone, and what it was forked from too."""
    processes = supervisor.sleeper(tmp_path)
    supervisor.process.kill()
    supervisor.process.wait()
    wait_until(lambda: not any(map(_lives, processes)), 10, "end")


def test_nothing_is_left(supervisor: Supervisor, tmp_path: Path) -> None:
    """With the supervisor the process that it forked from ends, and is waited for."""
    pid, server = supervisor.sleeper(tmp_path)
    os.kill(pid, signal.SIGTERM)
    supervisor.process.communicate(timeout=30)
    assert not Path(f"/proc/{server}").exists()


def test_the_fork_server_is_not_vital(supervisor: Supervisor, tmp_path: Path) -> None:
    """Programs survive the process that they were forked from; later ones are executed."""
    pid, server = supervisor.sleeper(tmp_path)
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: not _lives(server), 10, "end")
    assert _lives(pid)
    os.kill(pid, signal.SIGTERM)
    assert supervisor.answer()["status"] == -signal.SIGTERM
    assert supervisor.runs("look")["said"] == "executed\n"
    assert supervisor.runs("look")["said"] == "executed\n"
