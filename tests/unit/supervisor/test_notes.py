"""Files that tell of a running stack."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from services.supervisor import notes as supervisor_notes
from services.supervisor.notes import Notes
from tests.support.programs import until
from tests.support.small_disk import fill, small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "run", 1) as disk:
        yield disk


async def test_a_note_without_room(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be written is said in the log, once, and ends nothing; it is written as soon as there is room."""
    monkeypatch.setattr(supervisor_notes, "_AGAIN_SECONDS", 0.01)
    notes, filled = Notes(), fill(disk)
    with structlog.testing.capture_logs() as logs:
        notes.write(disk / "a.pid", "6")
        notes.write(disk / "a.pid", "7")
    assert [(line["log_level"], line["path"]) for line in logs] == [("warning", str(disk / "a.pid"))]
    trying = asyncio.create_task(notes.keep_trying())
    filled.unlink()
    await until(lambda: (disk / "a.pid").read_text() == "7\n")
    (disk / "a.pid").unlink()
    await asyncio.sleep(0.05)
    trying.cancel()
    assert not (disk / "a.pid").exists()


def test_a_note(tmp_path: Path) -> None:
    """It is a line."""
    Notes().write(tmp_path / "a.pid", "7")
    assert (tmp_path / "a.pid").read_text() == "7\n"
