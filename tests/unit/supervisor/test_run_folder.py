from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from services.common.ended import FORMER, ended
from services.common.runtime import CannotStart
from services.supervisor.run_folder import RunFolder


def test_one_supervisor_at_a_time(tmp_path: Path) -> None:
    """A second supervisor on the same data folder is refused with what to do, until the first is gone."""
    refused = pytest.raises(CannotStart, match=f"already on {tmp_path}.*HOPLINE_DATA")
    with RunFolder(tmp_path, tmp_path / "run"), refused:
        RunFolder(tmp_path, tmp_path / "elsewhere")
    with RunFolder(tmp_path, tmp_path / "run"):
        pass


def test_one_supervisor_for_sockets_too(tmp_path: Path) -> None:
    """Two stacks with data of their own cannot share the folder of the sockets."""
    with RunFolder(tmp_path / "a", tmp_path / "run"), pytest.raises(CannotStart):
        RunFolder(tmp_path / "b", tmp_path / "run")


def test_no_folder(tmp_path: Path) -> None:
    """What cannot be a folder is named, with what to do; nothing stays locked."""
    (tmp_path / "file").touch()
    for data, run in ((tmp_path / "file" / "data", tmp_path / "run"), (tmp_path, tmp_path / "file")):
        with pytest.raises(CannotStart, match=f"{tmp_path}/file.* cannot be used.*HOPLINE_DATA"):
            RunFolder(data, run)
    with RunFolder(tmp_path, tmp_path / "run"):
        pass


def test_pid_files(tmp_path: Path) -> None:
    """The supervisor's own pid is on file while it runs, and no pid file stays."""
    run = tmp_path / "run"
    with RunFolder(tmp_path, run) as folder:
        assert (run / "supervisor.pid").read_text() == f"{os.getpid()}\n"
        folder.note_pid("store", 1)
        assert (run / "store.pid").read_text() == "1\n"
    assert not list(run.glob("*.pid"))


def test_how_programs_ended(tmp_path: Path) -> None:
    """It is on file until the supervisor ends: when they serve again, as the end of the process before."""
    run = tmp_path / "run"
    with RunFolder(tmp_path, run) as folder:
        folder.note_end("store", "killed")
        folder.note_end("mgmt", "exit status 1")
        assert ended(run) == {"store": "killed", "mgmt": "exit status 1"}
        folder.note_end("store", "")
        folder.note_end("router", "")
        assert (ended(run), ended(run, FORMER)) == ({"mgmt": "exit status 1"}, {"store": "killed"})
    assert (ended(run), ended(run, FORMER)) == ({}, {})


def test_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    """What is on file of its programs tells nothing of those that the next one starts."""
    for name in ("queue-2.pid", "queue-2.ended", "queue-2.former"):
        (tmp_path / name).write_text("1\n")
    with RunFolder(tmp_path, tmp_path):
        assert [path.name for path in tmp_path.glob("queue-*")] == []


async def test_stale_socket_is_removed(tmp_path: Path) -> None:
    """A socket that a killed process left behind is removed."""
    path = tmp_path / "store.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(os.fspath(path))
    with RunFolder(tmp_path, tmp_path) as folder:
        await folder.clean([f"unix:{path}", "127.0.0.1:7000", f"unix:{tmp_path}/never.sock"])
    assert not path.exists()


async def test_waits_for_children_of_a_killed_supervisor(tmp_path: Path) -> None:
    """A socket that is served for a moment longer, by a child about to die, is waited for."""
    path = tmp_path / "store.sock"
    dying = socket.socket(socket.AF_UNIX)
    dying.bind(os.fspath(path))
    dying.listen()
    asyncio.get_running_loop().call_later(0.2, dying.close)
    with RunFolder(tmp_path, tmp_path) as folder:
        await folder.clean([f"unix:{path}"])
    assert not path.exists()


async def test_served_socket_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that was started by hand keeps its socket."""
    monkeypatch.setattr("services.supervisor.run_folder._LAST_GASP", 0.1)
    path = tmp_path / "store.sock"
    with socket.socket(socket.AF_UNIX) as served:
        served.bind(os.fspath(path))
        served.listen()
        with RunFolder(tmp_path, tmp_path) as folder, pytest.raises(CannotStart, match="another process serves"):
            await folder.clean([f"unix:{path}"])
    assert path.exists()


async def test_too_long_a_path(tmp_path: Path) -> None:
    """A folder too deep for a unix socket is refused in words."""
    with RunFolder(tmp_path, tmp_path) as folder, pytest.raises(CannotStart, match="HOPLINE_RUN"):
        await folder.clean([f"unix:{tmp_path}/{'x' * 108}.sock"])
