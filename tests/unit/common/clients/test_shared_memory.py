"""Memory that another process reads: the right one, or none."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.common.clients import shared_memory
from services.common.clients.shared_memory import HEAD, SharedMemory, read
from services.rpc import queue_pb2 as pb

_SIZE = 5 << 20
_READER = """
import sys
from services.common.clients.shared_memory import HEAD, read
from services.rpc import queue_pb2 as pb
memory = read(pb.SharedMemory.FromString(bytes.fromhex(sys.argv[1])))
print(bytes(memory[HEAD:HEAD + 5]).decode(), flush=True)
sys.stdin.readline()
print(bytes(memory[-3:]).decode())
"""
_IS_LOCKED = 3
_LOCKS = f"""
import fcntl, sys
try:
    fcntl.lockf(open(sys.argv[1], "rb+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    sys.exit({_IS_LOCKED})
"""


@pytest.fixture
def memory() -> Iterator[SharedMemory]:
    memory = SharedMemory(_SIZE)
    yield memory
    memory.close()


def test_another_process_reads_it() -> None:
    """Also when its writer has closed it: what was there is there."""
    memory = SharedMemory(_SIZE)
    memory.write(HEAD, [b"he", b"llo"])
    memory.write(HEAD + _SIZE - 3, [b"end"])
    said = memory.offer.SerializeToString().hex()
    reader = subprocess.Popen(
        [sys.executable, "-c", _READER, said], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert reader.stdout
    assert reader.stdout.readline() == "hello\n"
    memory.close()
    assert reader.communicate("go on\n", timeout=60)[0] == "end\n"


def test_it_cannot_be_written_by_its_reader(memory: SharedMemory) -> None:
    """Nor cut off by anybody, which would kill the reader."""
    its = read(memory.offer)
    assert its.readonly
    with pytest.raises(PermissionError):
        os.ftruncate(memory.offer.number, HEAD)


def test_another_memory(memory: SharedMemory) -> None:
    """Numbers mean something else in another container: what is found there must have the token."""
    offer = memory.offer
    offer.token = bytes(16)
    with pytest.raises(OSError, match="another memory"):
        read(offer)


@pytest.mark.parametrize("size", [0, 2 * HEAD])
def test_another_file(tmp_path: Path, size: int) -> None:
    """A file that somebody may cut off, of any size."""
    path = tmp_path / "file"
    path.write_bytes(bytes(size))
    with path.open("rb") as file, pytest.raises(OSError, match="another file"):
        read(pb.SharedMemory(pid=os.getpid(), number=file.fileno(), size=size, token=bytes(16)))


def test_a_file_of_the_reader(tmp_path: Path) -> None:
    """It may have the peer's number, in another container. It keeps its locks: it opens no such file."""
    with (tmp_path / "file").open("wb") as file:
        os.ftruncate(file.fileno(), 2 * HEAD)
        fcntl.lockf(file, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="another file"):
            read(pb.SharedMemory(pid=os.getpid(), number=file.fileno(), size=2 * HEAD, token=bytes(16)))
        other = subprocess.run([sys.executable, "-c", _LOCKS, file.name], check=False, timeout=60)
    assert other.returncode == _IS_LOCKED


def test_a_deleted_file(tmp_path: Path) -> None:
    """It has no name, and may be cut off all the same."""
    path = tmp_path / "file"
    with path.open("wb+") as file:
        os.ftruncate(file.fileno(), 2 * HEAD)
        path.unlink()
        with pytest.raises(OSError, match=r"cut off|Invalid argument"):
            read(pb.SharedMemory(pid=os.getpid(), number=file.fileno(), size=2 * HEAD, token=bytes(16)))


def test_a_pipe() -> None:
    """It is not waited for."""
    ends = os.pipe()
    try:
        with pytest.raises(OSError, match="another file"):
            read(pb.SharedMemory(pid=os.getpid(), number=ends[0], size=0, token=b""))
    finally:
        for end in ends:
            os.close(end)


def test_no_such_process() -> None:
    """Of this machine, or that may be seen."""
    with pytest.raises(OSError, match="No such file"):
        read(pb.SharedMemory(pid=(1 << 32) - 1, number=1, size=2 * HEAD, token=bytes(16)))


def test_a_system_without_memory_left(memory: SharedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked before anything is written, since the process would end else."""

    def no_more(*_: int) -> None:
        raise OSError("no memory")

    monkeypatch.setattr(os, "posix_fallocate", no_more)
    with pytest.raises(OSError, match="no memory"):
        memory.write(HEAD, [b"1"])


def test_a_system_without_such_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies go through the socket there."""
    monkeypatch.setattr(shared_memory, "_SEALS", 0)
    with pytest.raises(OSError, match="no memory without a name"):
        SharedMemory(_SIZE)
