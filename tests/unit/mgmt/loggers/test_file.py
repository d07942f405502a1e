"""A logger's file, while lines are on their way to it."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from services.mgmt.loggers import outbox, rolling
from services.mgmt.loggers.file import File, FileSink
from services.mgmt.loggers.layout import DEFAULT, Layout
from services.mgmt.loggers.outbox import in_place_of
from services.mgmt.loggers.rolling import Rolling, lock_of
from services.mgmt.model.faults import IllegalConfiguration
from services.rpc.logs_pb2 import Line


def _sink(path: Path) -> FileSink:
    return FileSink("a", Rolling(path), Layout(DEFAULT))


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_write_that_takes_longer_than_the_logger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lets the file go when it is done: the logger that took its place has the lock then, and writes."""
    monkeypatch.setattr(outbox, "_LAST", 0.05)
    former, began, go_on = _sink(tmp_path / "log"), threading.Event(), threading.Event()
    write = former._file._write

    def slow(text: bytes) -> None:
        began.set()
        go_on.wait()
        write(text)

    monkeypatch.setattr(former._file, "_write", slow)
    former.take([Line(text="first")])
    await asyncio.to_thread(began.wait)
    await former.close()
    go_on.set()
    await _until(lambda: former._file._file is None)
    later = _sink(tmp_path / "log")
    later.take([Line(text="second")])
    await _until(lambda: "second" in (tmp_path / "log").read_text())
    await later.close()


def _of(process: str, *numbers: int, text: str = "said") -> list[Line]:
    return [Line(process=process, number=each, text=f"{text} {process}{each}.") for each in numbers]


def _ends(path: Path) -> list[str]:
    return [line.rsplit(" ", 1)[1] for line in path.read_text().splitlines()]


async def _written(path: Path, *batches: list[Line]) -> list[str]:
    """What is in the file when a logger has taken them."""
    sink = _sink(path)
    for batch in batches:
        sink.take(batch)
    await sink.close()
    assert not sink.trouble
    return _ends(path)


async def test_lines_that_come_late(tmp_path: Path) -> None:
    """The next management process writes what is not in the file, whatever the lines' times say, and nothing twice."""
    path = tmp_path / "log"
    assert await _written(path, _of("a", 1, 2), _of("b", 7)) == ["a1.", "a2.", "b7."]
    retold = [*_of("b", 6, 7, 8), *_of("a", 1, 2, 3), *_of("c", 1)]
    assert await _written(path, retold) == ["a1.", "a2.", "b7.", "b8.", "a3.", "c1."]


async def test_one_that_stood_by(tmp_path: Path) -> None:
    """When the process that wrote the file ends, the next writes what came before, and is not in it."""
    first, second = _sink(tmp_path / "log"), _sink(tmp_path / "log")
    first.take(_of("a", 1))
    await _until(lambda: first._file._file is not None and not first._waiting)
    second.take(_of("a", 1, 2))
    await _until(lambda: len(second._stood_by) == 2)
    await first.close()
    second.take(_of("a", 3))
    await second.close()
    assert _ends(tmp_path / "log") == ["a1.", "a2.", "a3."]


@pytest.mark.parametrize(("name", "wanted"), [("log", ["a1.", "a2.", "a3."]), ("other", ["a2.", "a3."])])
async def test_one_that_stood_by_and_is_changed(tmp_path: Path, name: str, wanted: list[str]) -> None:
    """What the process that wrote did not write, the changed logger does, and nothing twice, be it another file."""
    first, second = _sink(tmp_path / "log"), _sink(tmp_path / "log")
    first.take(_of("a", 1))
    await _until(lambda: first._file._file is not None and not first._waiting)
    second.take(_of("a", 1, 2))
    await _until(lambda: len(second._stood_by) == 2)
    await first.close()
    await second.close()
    second.take(_of("a", 3))
    changed = in_place_of(second, _sink(tmp_path / name))
    await changed.close()
    assert _ends(tmp_path / name) == wanted


@pytest.mark.parametrize("moment", ["_leave", "_compress"])
@pytest.mark.parametrize("ends", [True, False])
async def test_another_stands_by_while_it_rolls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, ends: bool
) -> None:
    """In the middle of a batch, as long as the former file is compressed: each line is in one of them, once."""
    path, began, go_on = tmp_path / "log", threading.Event(), threading.Event()
    first = FileSink("a", Rolling(path, compress=True, largest=100), Layout("%msg%n"))
    second = FileSink("a", Rolling(path), Layout("%msg%n"))
    where: object = first._file if moment == "_leave" else rolling
    original: Callable[..., None] = getattr(where, moment)

    def slow(*its: Path) -> None:
        began.set()
        go_on.wait(10)
        original(*its)

    monkeypatch.setattr(where, moment, slow)
    first.take(_of("a", *range(1, 13)))
    await asyncio.to_thread(began.wait, 10)
    second.take(_of("a", *range(1, 14)))
    await _until(lambda: len(second._stood_by) == 13)
    if ends:
        await second.close()
    go_on.set()
    await _until(lambda: not first._writing.locked())
    first.take(_of("a", 13, 14))
    await first.close()
    if not ends:
        second.take(_of("a", 14, 15))
        await second.close()
    last = 14 if ends else 15
    whole = "".join(f"said a{each}.\n" for each in range(1, last + 1))
    assert gzip.decompress((tmp_path / "log.1.gz").read_bytes()).decode() + path.read_text() == whole
    assert json.loads((tmp_path / "log.positions").read_bytes()) == {"processes": {"a": last}}


async def test_positions_that_cannot_be_read(tmp_path: Path) -> None:
    """The file goes on without them."""
    (tmp_path / "log.positions").write_text("[1]")
    assert await _written(tmp_path / "log", _of("a", 1)) == ["a1."]


async def test_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong with lines is said, and those that come later are written."""
    monkeypatch.setattr(outbox, "_AGAIN", 0.01)
    sink, layout = _sink(tmp_path / "log"), Layout(DEFAULT)

    def broken(_line: Line) -> str:
        raise RuntimeError("a fault")

    monkeypatch.setattr(sink, "_layout", broken)
    sink.take([Line(text="first")])
    await _until(lambda: sink.trouble == "a fault")
    monkeypatch.setattr(sink, "_layout", layout)
    await _until(lambda: not sink.trouble)
    assert "first" in (tmp_path / "log").read_text()
    await sink.close()


async def test_a_disk_that_was_full_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line is written once, those before it too."""
    monkeypatch.setattr(outbox, "_AGAIN", 0.01)
    sink, full = _sink(tmp_path / "log"), True
    write = sink._file._write

    def written(text: bytes) -> None:
        if full and b"third" in text:
            raise OSError(28, "No space left on device")
        write(text)

    monkeypatch.setattr(sink._file, "_write", written)
    sink.take([Line(text=each) for each in ("first", "second", "third", "fourth")])
    await _until(lambda: sink.trouble == "No space left on device")
    full = False
    await _until(lambda: not sink.trouble)
    said = (tmp_path / "log").read_text()
    assert [said.count(each) for each in ("first", "second", "third", "fourth")] == [1, 1, 1, 1]
    await sink.close()


@pytest.mark.parametrize("name", ["a" * 255, "a" * 250, ".a.lock", "a.log.1", "a.gz", "a.positions", "locked"])
def test_a_name_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    """As long as it may be, where the lock and former files have longer ones; theirs; one whose lock cannot be had."""
    lock_of(tmp_path / "locked").mkdir()
    with pytest.raises(IllegalConfiguration, match="fileName"):
        File().check({**File.defaults, "fileName": name}, tmp_path)


def test_room_for_names(tmp_path: Path) -> None:
    """A name that is long may be had where former files are not called by their day, nor compressed."""
    said = {**File.defaults, "fileName": "a" * 240}
    File().check(said, tmp_path)
    for more in ({"rollDaily": True}, {"compressOldFiles": True, "rollDaily": True}):
        with pytest.raises(IllegalConfiguration, match="leaves no room for names as"):
            File().check({**said, **more}, tmp_path)


@pytest.mark.parametrize("name", ["a" * 200, "x.lock", ".hidden"])
async def test_a_name_that_is_like_a_lock_s(tmp_path: Path, name: str) -> None:
    """Is one that loggers may have."""
    said = {**File.defaults, "fileName": name, "rollDaily": True, "compressOldFiles": True}
    File().check(said, tmp_path)
    sink = await File().open(said, tmp_path, None)
    sink.take(_of("a", 1))
    await sink.close()
    assert _ends(tmp_path / name) == ["a1."]
