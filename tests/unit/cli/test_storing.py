"""Where `hopline store backup` puts its file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from services.__main__ import app
from services.common import secret
from services.common.clients.store import StoreClient

BackUp = Callable[[str], Result]


async def _of_nothing(*_: object) -> AsyncIterator[None]:
    for nothing in ():
        yield nothing


@pytest.fixture
def back_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[BackUp]:
    """Backs up a store with nothing in it."""
    monkeypatch.setenv("HOPLINE_DATA", str(tmp_path))
    monkeypatch.setattr(StoreClient, "backup", _of_nothing)
    yield lambda path: CliRunner().invoke(app.whole, ["store", "backup", path])
    secret.use("")


@pytest.mark.parametrize("there", [True, False])
def test_a_folder(back_up: BackUp, tmp_path: Path, *, there: bool) -> None:
    """It gets a file named by the time; as the README has it, with a slash, it is made where it is not there."""
    folder = tmp_path / "backups"
    if there:
        folder.mkdir()
    result = back_up(f"{folder}/")
    [file] = folder.iterdir()
    assert file.name.startswith("hopline-")
    assert f"{file}: " in result.stdout


def test_a_file(back_up: BackUp, tmp_path: Path) -> None:
    """It has the name that is given."""
    assert back_up(str(tmp_path / "one.backup")).exit_code == 0
    assert (tmp_path / "one.backup").is_file()


def test_a_folder_that_cannot_be_made(back_up: BackUp, tmp_path: Path) -> None:
    """Says so in a line."""
    result = back_up(f"{tmp_path}/no/backups/")
    assert result.exit_code == 1
    assert result.stderr == f"the folder {tmp_path}/no/backups/ cannot be made: No such file or directory\n"
