"""Commands are there in a moment: only the one that is asked for is built."""

from __future__ import annotations

import gc
import sys

import pytest

from services.__main__ import app
from services.cli import quick

HELP = "--help"


def help_of(command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed of it."""
    monkeypatch.setattr(sys, "argv", ["hopline", *command, HELP])
    with pytest.raises(SystemExit):
        app()
    return capsys.readouterr().out


@pytest.mark.parametrize("name", ["trace", "queues", "up", "acl"])
def test_it_is_the_same_alone(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A command, or a group, says the same of itself as among all others."""
    alone = help_of([name], monkeypatch, capsys)
    monkeypatch.setattr(app, "alone", lambda *_: None)
    assert "Usage: " in alone
    assert alone == help_of([name], monkeypatch, capsys)


def test_every_command_is_found_alone() -> None:
    """Under the name that it has among the others."""
    for name in app.built.commands:
        assert list(app.alone(name).commands) == [name]


@pytest.mark.parametrize("words", [(), ("nothing",), (HELP,)])
def test_all_are_told(words: tuple[str, ...]) -> None:
    """Where none is named that there is."""
    assert app.alone(*words) is None


def test_nothing_else_is_built(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It takes a tenth of the time of a look-up."""
    monkeypatch.setitem(app.__dict__, "built", None)
    assert "trace" in help_of(["trace"], monkeypatch, capsys)


def test_what_was_imported_is_not_looked_through() -> None:
    """Garbage is collected again once a command asks a service, and only of what came since."""
    gc.disable()
    try:
        quick.asks()
        assert gc.isenabled()
        assert gc.get_count()[0] < gc.get_freeze_count()
    finally:
        gc.enable()
        gc.unfreeze()
