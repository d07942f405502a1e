from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark import compiling
from spark.compiling import QUICKLY, java_options
from spark.run import Sources


def _filed(ledger: Path, hour: int, size: int, name: str = "part-1.parquet") -> None:
    folder = ledger / "stages" / "date=2026-01-31" / f"hour={hour:02}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(bytes(size))


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred bytes are much."""
    monkeypatch.setattr(compiling, "_LARGE", 100)


def test_of_what_is_read(tmp_path: Path) -> None:
    """Java compiles in full where much is read, or often, and that counts which is read of a ledger."""
    _filed(tmp_path, 10, 60)
    _filed(tmp_path, 10, 500, "_being_written.parquet")
    assert java_options(Sources(str(tmp_path))) == QUICKLY
    assert java_options(Sources(str(tmp_path)), times=2) == ""
    _filed(tmp_path, 12, 60)
    assert java_options(Sources(str(tmp_path))) == ""
    assert java_options(Sources(str(tmp_path), since=datetime(2026, 1, 31, 11, tzinfo=UTC))) == QUICKLY


def test_of_spans(tmp_path: Path) -> None:
    """What reads spans alone is judged by their folders, with those in them."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.jsonl").write_bytes(bytes(60))
    sources = Sources("nowhere", spans=(str(tmp_path), str(tmp_path / "none")))
    assert java_options(sources, spans=True) == QUICKLY
    (tmp_path / "b.jsonl").write_bytes(bytes(60))
    assert java_options(sources, spans=True) == ""


def test_not_known() -> None:
    """Where nobody knows how much it is, it may be much."""
    assert java_options(Sources("nosuchscheme://nowhere")) == ""
