"""Files of logs that roll."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import IO

import pytest

from services.mgmt.loggers.rolling import Rolling, RollingFile, files, lock_of

DAY = date(2026, 11, 27)


class Days:
    """A calendar that a test turns."""

    def __init__(self) -> None:
        self.today = DAY

    def __call__(self) -> date:
        return self.today


def write(file: RollingFile, texts: list[bytes]) -> bool:
    """Whether all are in it, or in a former one; as a logger does."""
    while texts:
        if not file.hold():
            return False
        file.write(texts)
        if texts := texts[file.written :]:
            file.roll()
    return True


def names(folder: Path) -> list[str]:
    """But for the lock, which is hidden."""
    return sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))


def test_when_it_is_full(tmp_path: Path) -> None:
    """A file begins anew; so many former ones stay, the latest with the lowest number, and nothing is lost of them."""
    path = tmp_path / "a.log"
    (tmp_path / "a.log.else").touch()
    file = RollingFile(Rolling(path, largest=10, history=2))
    for number in range(8):
        assert write(file, [b"line %d\n" % number])
    assert names(tmp_path) == ["a.log", "a.log.1", "a.log.2", "a.log.else"]
    assert [(tmp_path / name).read_bytes() for name in names(tmp_path)[:3]] == [b"line 7\n", b"line 6\n", b"line 5\n"]
    assert {each.name for each in files(path)} == {"a.log", "a.log.1", "a.log.2"}


def test_compressed(tmp_path: Path) -> None:
    """Former files are gzipped, whichever they were before."""
    path = tmp_path / "a.log"
    for compress in (False, True):
        file = RollingFile(Rolling(path, largest=5, history=3, compress=compress))
        for number in range(2):
            write(file, [b"%s%d\n" % (str(compress).encode(), number)])
        file.close()
    assert names(tmp_path) == ["a.log", "a.log.1.gz", "a.log.2.gz", "a.log.3"]
    assert gzip.decompress((tmp_path / "a.log.1.gz").read_bytes()) == b"True0\n"
    assert (tmp_path / "a.log.3").read_bytes() == b"False0\n"


def test_each_day(tmp_path: Path) -> None:
    """Former files have their day in their names; they stay for so many days, and ten of a day at most."""
    today, path = Days(), tmp_path / "a.log"
    file = RollingFile(Rolling(path, largest=4, daily=True, history=2), today)
    for _ in range(14):
        write(file, [b"old\n"])
    assert len(names(tmp_path)) == 11
    today.today += timedelta(days=1)
    write(file, [b"new\n"])
    today.today += timedelta(days=1)
    write(file, [b"2\n"])
    assert (tmp_path / f"a.log.{DAY + timedelta(days=1)}.0").read_bytes() == b"new\n"
    today.today += timedelta(days=1)
    write(file, [b"3\n"])
    assert names(tmp_path) == ["a.log", *(f"a.log.{DAY + timedelta(days=each)}.0" for each in (1, 2))]


@pytest.mark.parametrize("wanted", [True, False])
def test_on_restart(tmp_path: Path, wanted: bool) -> None:
    """A file of a former run goes on, or becomes a former file."""
    path = tmp_path / "a.log"
    for text in (b"1\n", b"2\n"):
        file = RollingFile(Rolling(path, on_restart=wanted))
        write(file, [text])
        file.close()
    assert path.read_bytes() == (b"2\n" if wanted else b"1\n2\n")
    assert (tmp_path / "a.log.1").exists() is wanted


def test_one_writes(tmp_path: Path) -> None:
    """Another stands by until it ends, also after the file has rolled."""
    wanted = Rolling(tmp_path / "a.log", largest=4)
    first, second = RollingFile(wanted), RollingFile(wanted)
    assert write(first, [b"one\n", b"two\n"])
    assert not write(second, [b"not\n"])
    first.close()
    assert write(second, [b"yes\n"])
    assert wanted.path.read_bytes() == b"yes\n"


def test_a_file_that_somebody_moved(tmp_path: Path) -> None:
    """As logrotate does: it begins anew where it is to be."""
    path = tmp_path / "a.log"
    file = RollingFile(Rolling(path))
    write(file, [b"1\n"])
    path.rename(tmp_path / "moved")
    write(file, [b"2\n"])
    assert (path.read_bytes(), (tmp_path / "moved").read_bytes()) == (b"2\n", b"1\n")


def test_nobody_rolls_while_another_makes_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The former file is that of the archive until it is done: who shifted it then had another one deleted."""
    wanted, copy, tried = Rolling(tmp_path / "a.log", largest=4, history=3, compress=True), shutil.copyfileobj, []
    first, second = RollingFile(wanted), RollingFile(wanted)

    def slow(read: IO[bytes], written: IO[bytes], length: int) -> None:
        if not tried:
            tried.append(write(second, [b"two\n", b"six\n", b"ten\n"]))
        copy(read, written, length)

    monkeypatch.setattr(shutil, "copyfileobj", slow)
    assert write(first, [b"one\n", b"two\n"])
    assert tried == [False]
    first.close()
    assert write(second, [b"six\n"])
    assert names(tmp_path) == ["a.log", "a.log.1.gz", "a.log.2.gz"]
    archives = [gzip.decompress((tmp_path / f"a.log.{number}.gz").read_bytes()) for number in (2, 1)]
    assert [*archives, wanted.path.read_bytes()] == [b"one\n", b"two\n", b"six\n"]


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_a_file_that_somebody_moves_meanwhile(tmp_path: Path, deleted: bool, full: bool, again: bool) -> None:
    """As logrotate does amid a batch, which makes the next as well or has packed this: all lines are where it is to be.

    Who packs the other may have read it before they came.
    """
    path, moved = tmp_path / "a.log", tmp_path / "moved"
    file = RollingFile(Rolling(path, largest=8 if full else 100))

    def texts() -> Iterator[bytes]:
        yield b"one\n"
        path.rename(moved)
        if again:
            path.touch()
        if deleted:
            moved.unlink()
        yield b"two\n"
        yield b"six\n"

    assert file.hold()
    file.write(texts())
    done = file.written
    if done < 3:
        file.roll()
    assert write(file, [b"one\n", b"two\n", b"six\n"][done:])
    there = [each.read_bytes() for each in (tmp_path / "a.log.1", path) if each.exists()]
    assert b"".join(there) == b"one\ntwo\nsix\n"
    assert moved.exists() is not deleted


def test_a_file_that_somebody_cuts(tmp_path: Path) -> None:
    """As logrotate does that copies it: it is full when it is full again."""
    path = tmp_path / "a.log"
    file = RollingFile(Rolling(path, largest=8))
    write(file, [b"one\n", b"two\n"])
    os.truncate(path, 0)
    write(file, [b"six\n", b"ten\n"])
    assert names(tmp_path) == ["a.log"]
    assert path.read_bytes() == b"six\nten\n"


@pytest.mark.parametrize("lock", [False, True])
def test_a_lock_that_is_gone(tmp_path: Path, lock: bool) -> None:
    """One on the file itself is left, which keeps others out as well."""
    wanted = Rolling(tmp_path / "a.log")
    first, second = RollingFile(wanted), RollingFile(wanted)
    assert write(first, [b"one\n"])
    (lock_of(wanted.path) if lock else wanted.path).unlink()
    assert not write(second, [b"not\n"])
    first.close()
    assert write(second, [b"yes\n"])


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    """What cannot be opened is said, and is tried again."""
    path = tmp_path / "folder" / "a.log"
    file = RollingFile(Rolling(path))
    path.parent.touch()
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        write(file, [b"x\n"])
    path.parent.unlink()
    assert write(file, [b"x\n"])


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a line that did not fit there is nothing, and who wrote knows how many are there."""
    file, at_once, room = RollingFile(Rolling(tmp_path / "a.log")), os.write, 6

    def full(descriptor: int, data: memoryview) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = at_once(descriptor, data[:room])
        room -= done
        return done

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        write(file, [b"one\n", b"two\n", b"six\n"])
    assert (file.written, (tmp_path / "a.log").read_bytes()) == (1, b"one\n")
    room = 100
    write(file, [b"two\n", b"six\n"])
    assert (tmp_path / "a.log").read_bytes() == b"one\ntwo\nsix\n"


def test_a_full_disk_and_a_file_that_somebody_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the disk was full: what was written then is not where the file is to be."""
    path = tmp_path / "a.log"
    file, at_once = RollingFile(Rolling(path)), os.write

    def full(descriptor: int, data: memoryview) -> int:
        if bytes(data) == b"two\n":
            path.rename(tmp_path / "moved")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return at_once(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        write(file, [b"one\n", b"two\n"])
    assert file.written == 0


def test_an_archive_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of it, and the file stays as it was."""
    path = tmp_path / "a.log"
    file = RollingFile(Rolling(path, largest=4, compress=True))
    write(file, [b"one\n"])

    def full(read: IO[bytes], written: IO[bytes], _length: int) -> None:
        written.write(read.read())
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(OSError, match="No space left"):
        write(file, [b"two\n"])
    assert names(tmp_path) == ["a.log.1"]
    assert (tmp_path / "a.log.1").read_bytes() == b"one\n"


def test_an_archive_of_a_process_that_has_ended(tmp_path: Path) -> None:
    """It goes when it is old, and not what another process writes at this moment."""
    for name in ("a.log.1.part", "a.log.2026-11-27.0.part", "b.log.1.part", "a.log.2.part"):
        (tmp_path / name).touch()
        if name != "a.log.2.part":
            os.utime(tmp_path / name, (0, 0))
    file = RollingFile(Rolling(tmp_path / "a.log", largest=4))
    write(file, [b"one\n", b"two\n"])
    assert names(tmp_path) == ["a.log", "a.log.1", "a.log.2.part", "b.log.1.part"]
