from __future__ import annotations

from pathlib import Path

from services.common.config import Settings
from services.mgmt.spans_note import spans_note
from tests.support.small_disk import fill, small_disk


def test_a_full_disk_of_spans(tmp_path: Path) -> None:
    """Health says that no spans are written, and where there has to be room, for as long as that is so."""
    with small_disk(tmp_path / "spans", 1) as folder:
        settings = Settings(data=tmp_path, spans=folder)
        assert spans_note(settings) == {}
        filled = fill(folder)
        assert f"make room for {folder}" in spans_note(settings)["spans"]
        filled.unlink()
        assert spans_note(settings) == {}


def test_no_spans(tmp_path: Path) -> None:
    """Where nothing was ever traced nothing is said of it."""
    assert spans_note(Settings(data=tmp_path)) == {}
