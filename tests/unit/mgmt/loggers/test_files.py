"""Files of loggers, given as they are or in archives."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from services.common.errors import Unavailable
from services.mgmt.loggers import files
from services.mgmt.model.faults import IllegalConfiguration


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """With a former file."""
    for name in ("a.log", "a.log.1"):
        (tmp_path / name).write_text(name * 10)
    return tmp_path / "a.log"


def test_an_archive(path: Path) -> None:
    """All of them are in it."""
    told = files.content(path, "getAllFiles", {})
    assert told.data is not None
    with zipfile.ZipFile(io.BytesIO(told.data)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            "a.log": b"a.log" * 10,
            "a.log.1": b"a.log.1" * 10,
        }


def test_too_large_an_archive(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before anything is made of it; one of its files is given."""
    monkeypatch.setattr(files, "LARGEST", 100)
    with pytest.raises(IllegalConfiguration, match="getFiles gives some"):
        files.content(path, "getAllFiles", {})
    assert files.content(path, "getFiles", {"fileName": ["a.log"]}).data


def test_too_many_archives(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as they are being sent, or wait for that; then there is room again, whether they were read or not."""
    monkeypatch.setattr(files, "_IN_A_MAP", 10)
    sent = [files.content(path, "getAllFiles", {}) for _ in range(files.MOST_ARCHIVES)]
    with pytest.raises(Unavailable, match="try again"):
        files.content(path, "getAllFiles", {})
    assert sent[0].pieces is not None
    assert b"".join(sent.pop(0).pieces or ()).startswith(b"PK")
    sent.append(files.content(path, "getAllFiles", {}))
    sent.clear()  # nobody has read them
    for _ in range(2 * files.MOST_ARCHIVES):
        assert files.content(path, "getAllFiles", {}).pieces is not None


def test_an_archive_that_does_not_fit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes no room from others."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "write", full)
    for _ in range(files.MOST_ARCHIVES + 1):
        with pytest.raises(OSError, match="No space left"):
            files.content(path, "getAllFiles", {})
