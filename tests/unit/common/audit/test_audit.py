from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.common.audit import audit as module
from services.common.audit.audit import Audit
from services.common.audit.entry import CHANGED, DENIED, REFUSED, SIGNED_IN, Entry
from services.common.bus.facts import Audited
from services.common.config import Settings
from tests.support.programs import until

ENTRY = Entry(SIGNED_IN, "alice", "internal", "PLAIN", "192.0.2.7:5", "amqp", "7.1")


@pytest.fixture
async def audit(tmp_path: Path) -> AsyncIterator[Audit]:
    audit = Audit(Settings(data=tmp_path), "gateway", "gateway-7")
    audit.start()
    yield audit
    await audit.stop()


def lines(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for path in sorted(folder.glob("audit/*/*.jsonl")) for line in path.read_text().splitlines()
    ]


async def test_a_line(audit: Audit, tmp_path: Path) -> None:
    """Says who, how, from where, when; what is empty is left out; it is on the bus too. Only its owner reads it."""
    told: list[Any] = []
    audit._publish = told.append
    audit.tell(ENTRY)
    await audit.stop()
    [line] = lines(tmp_path)
    assert line.pop("time").startswith("20")
    assert line == {
        "service": "gateway", "instance": "gateway-7", "event": "signed in", "user": "alice", "provider": "internal",
        "mechanism": "PLAIN", "peer": "192.0.2.7:5", "through": "amqp", "connection": "7.1",
    }  # fmt: skip
    [event] = told
    assert isinstance(event, Audited)
    assert (event.kind, event.event, event.user) == ("audit.recorded", "signed in", "alice")
    [folder] = (tmp_path / "audit").iterdir()
    assert folder.stat().st_mode & 0o77 == 0


async def test_a_line_stays_one_line(audit: Audit, tmp_path: Path) -> None:
    """With any name."""
    name = 'a\nb"\x1b[31m\udcff' + "x" * 10_000
    audit.tell(Entry(REFUSED, name))
    await audit.stop()
    [line] = lines(tmp_path)
    assert line["user"] == name[:512]


async def test_thousands_of_refusals_are_two_lines(
    audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refusals before sign-in cannot make other lines rotate away; counts are not lost when a process stops."""
    for _ in range(5000):
        audit.count(Entry(REFUSED, "alice", peer="192.0.2.7"))
        audit.count(Entry(REFUSED, "alice", peer="192.0.2.8"))
    await audit.stop()
    assert [(line["peer"], line.get("count", 1)) for line in lines(tmp_path)] == [
        ("192.0.2.7", 1), ("192.0.2.8", 1), ("192.0.2.7", 4999), ("192.0.2.8", 4999),
    ]  # fmt: skip


async def test_the_first_of_many_does_not_wait(audit: Audit, tmp_path: Path) -> None:
    """It is on disk while the others are counted: a process that is killed loses how many there were, and no more."""
    for _ in range(3):
        audit.count(Entry(DENIED, "alice", peer="192.0.2.7", what="QUEUE", name="q"))
    await until(lambda: bool(lines(tmp_path)))
    [line] = lines(tmp_path)
    assert (line["event"], line["name"], "count" in line) == (DENIED, "q", False)


async def test_what_many_are_denied_hides_no_sign_in(
    audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each event has its own limit of separate counts: a thousand denials use up the room of denials alone."""
    monkeypatch.setattr(module, "_KINDS", 10)
    for number in range(20):
        audit.count(Entry(DENIED, "mallory", peer="192.0.2.7", what="QUEUE", name=f"q{number}"))
    audit.count(Entry(SIGNED_IN, "alice", peer="192.0.2.8", through="http"))
    await audit.stop()
    events = [(line["event"], line.get("count", 1)) for line in lines(tmp_path)]
    assert (SIGNED_IN, 1) in events
    assert events.count((DENIED, 1)) == 10
    assert ("missed", 10) in events


def test_long_texts_are_cut() -> None:
    """Wherever it waits to be written, counted or told on the bus: a name may be as long as a frame."""
    entry = Entry(DENIED, "u" * 60_000, reason="r" * 60_000, name="n" * 60_000)
    assert {len(each) for each in (entry.user, entry.reason, entry.name)} == {512}


async def test_a_disk_that_is_full(audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Holds no request up; how much was missed is written as soon as there is room."""
    monkeypatch.setattr(module, "_GATHER", 0.0)

    def full(_data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(audit._files, "append", full)
        audit.tell(ENTRY)
        with pytest.raises(OSError, match="No space"):
            await audit._write()
    audit.tell(Entry(CHANGED, what="user", name="bob", change="deleted", by="alice"))
    await audit.stop()
    assert [(line["event"], line.get("count")) for line in lines(tmp_path)] == [("missed", None), ("changed", None)]


async def test_switched_off(tmp_path: Path) -> None:
    """Nothing is written, and nothing waits."""
    audit = Audit(Settings(data=tmp_path, audit=False), "gateway", "gateway-7")
    audit.start()
    audit.tell(ENTRY)
    audit.count(ENTRY)
    await audit.stop()
    assert not (tmp_path / "audit").exists()


async def test_a_stop_while_a_line_is_written(audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closes the file behind that write, which may open it yet: none stays open. It can be stopped again."""
    append, began, ended = audit._files.append, threading.Event(), threading.Event()

    def slowly(written: bytes) -> None:
        began.set()
        time.sleep(0.2)
        append(written)
        ended.set()

    monkeypatch.setattr(audit._files, "append", slowly)
    audit.tell(ENTRY)
    assert await asyncio.to_thread(began.wait, 5)
    await audit.stop()
    assert await asyncio.to_thread(ended.wait, 5)
    assert audit._files._file is None
    assert len(lines(tmp_path)) == 1
    await audit.stop()
