"""Files that tell of a running stack."""

from __future__ import annotations

from pathlib import Path

import structlog

from services.supervisor.notes import note


def test_a_note_without_room(tmp_path: Path) -> None:
    """What cannot be written is said in the log, and ends nothing."""
    note(tmp_path / "a.pid", "7")
    assert (tmp_path / "a.pid").read_text() == "7\n"
    with structlog.testing.capture_logs() as logs:
        note(Path("/dev/full"), "7")
    assert [(line["log_level"], line["path"]) for line in logs] == [("warning", "/dev/full")]
