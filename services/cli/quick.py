"""A command that asks a question ends in a moment: to look for garbage meanwhile takes a quarter of its time."""

from __future__ import annotations

import atexit
import gc
import sys
from functools import cached_property
from typing import Any

import typer
from typer.main import get_command


class Quick(typer.Typer):
    """No garbage is looked for until `asks`, or the end of the command; nor when the process ends, which frees all."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as Typer's
        _check_texts(sys.argv[1:])
        gc.disable()
        atexit.register(gc.freeze)
        try:
            return self.built(*arguments, **options)
        finally:
            gc.enable()

    @cached_property
    def built(self) -> Any:  # noqa: ANN401 - click's, which Typer has a copy of
        """All commands. Built once: services are forked from who has them, and share what a tree of them takes."""
        return get_command(self)


def _check_texts(arguments: list[str]) -> None:
    """Exits with status 2 for one that is not in the encoding of this terminal: nothing here has such a name."""
    for each in arguments:
        if any("\ud800" <= character <= "\udfff" for character in each):
            typer.echo(f"{each.encode(errors='surrogateescape')!r} is no text in UTF-8", err=True)
            raise SystemExit(2)


def asks() -> None:
    """From now on the command talks to somebody, who may have much to say."""
    gc.enable()


def works() -> None:
    """From now on this process works, with libraries that say so when something of theirs is left at the end."""
    gc.enable()
    atexit.unregister(gc.freeze)
