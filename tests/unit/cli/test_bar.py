"""A bar on what takes long."""

from __future__ import annotations

import asyncio

import pytest

from services.cli import bar as bars
from services.cli.console import say


@pytest.mark.parametrize(("terminal", "shown"), [("1", True), ("", False)])
async def test_where_somebody_looks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: str, shown: bool
) -> None:
    """It is on standard error, if that is a terminal; what is written meanwhile goes where it did."""
    monkeypatch.setattr(bars, "_PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", terminal)
    async with bars.bar("listing") as going:
        going.at(1, 7)
        await asyncio.sleep(0.2)
        going.at(2, 7)
        say(["a row"])
        await asyncio.sleep(0.2)
    said = capsys.readouterr()
    assert said.out == "a row\n"
    assert ("listing" in said.err and "2/7" in said.err) is shown


async def test_what_nobody_counts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Is not said to be 0 of something."""
    monkeypatch.setattr(bars, "_PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    async with bars.bar("waiting"):
        await asyncio.sleep(0.2)
    said = capsys.readouterr().err
    assert "waiting" in said
    assert "?" not in said.replace("\x1b[?25", "")  # what hides and shows the cursor


@pytest.mark.parametrize("patience", [0.0, 60.0])
async def test_what_is_done_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], patience: float
) -> None:
    """Has none; nor has what shows by itself that it goes on."""
    monkeypatch.setattr(bars, "_PATIENCE", patience)
    monkeypatch.setenv("FORCE_COLOR", "1")
    async with bars.bar("listing") as going:
        if not patience:
            going.hide()
        await asyncio.sleep(0.1)
    async with bars.bar("listing", wanted=False):
        await asyncio.sleep(0.1)
    assert capsys.readouterr().err == ""
