"""`hopline store copy`, `export` and `import` of stores whose configuration is apart: options name where that is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.__main__ import app
from services.common import secret
from services.store.moving.site import site
from tests.support.kept import everything, write_everything
from tests.support.moving import house_of


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HOPLINE_DATA", str(tmp_path))
    yield
    secret.use("")


async def _fill(folder: Path) -> None:
    house = house_of(site(str(folder)))
    await house.start()
    await write_everything(house)
    await house.stop()


def _store(*arguments: object) -> str:
    done = CliRunner().invoke(app.whole, ["store", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def _contents(folder: Path, configuration: str = "") -> object:
    async def read() -> object:
        async with site(str(folder), configuration).source() as provider:
            return await everything(provider)

    return asyncio.run(read())


def test_there_and_back(tmp_path: Path) -> None:
    """A store is parted and put together again, and is the same; through a file it has the same records."""
    one, two, again, other = (tmp_path / name for name in ("one", "two", "again", "other"))
    asyncio.run(_fill(one))
    _store("copy", one, two, "--to-configuration", "sqlite:")
    assert _contents(two, "sqlite:") == _contents(one)
    _store("copy", two, again, "--from-configuration", "sqlite:")
    assert _contents(again) == _contents(one)
    _store("export", two, tmp_path / "file", "--configuration", "sqlite:")
    said = _store("import", tmp_path / "file", other, "--configuration", "sqlite:")
    assert "generation 2" in said
    assert (other / "configuration" / "hopline.db").exists()


def test_a_restore_makes_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the setting says that there are to be two it says what to do, and writes nothing."""
    asyncio.run(_fill(tmp_path / "one"))
    _store("export", tmp_path / "one", tmp_path / "file")
    monkeypatch.setenv("HOPLINE_STORE_CONFIGURATION_URL", "sqlite:")
    done = CliRunner().invoke(app.whole, ["store", "restore", str(tmp_path / "file"), "--to", str(tmp_path / "new")])
    assert done.exit_code == 1
    assert "hopline store import FILE TO --configuration URL" in done.output
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("holds", ["messages", "configuration"])
def test_a_restore_over_a_half(tmp_path: Path, holds: str) -> None:
    """It is refused, and nothing is put aside: what is left of the other would be of no use."""
    asyncio.run(_fill(tmp_path / "one"))
    _store("export", tmp_path / "one", tmp_path / "file")
    _store("copy", tmp_path / "one", two := tmp_path / "two", "--to-configuration", "sqlite:")
    if holds == "configuration":
        (two / "hopline.db").unlink()
    done = CliRunner().invoke(
        app.whole, ["store", "restore", str(tmp_path / "file"), "--to", str(tmp_path / "two"), "--replace"]
    )
    assert done.exit_code == 1
    assert f"has only the {holds} of a store" in done.output
    assert "hopline store import FILE TO --configuration URL" in done.output
    assert not list(two.glob("replaced-*"))
