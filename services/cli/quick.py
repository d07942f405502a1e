"""Commands without garbage collection: they end in a moment, of which it would take a quarter."""

from __future__ import annotations

import atexit
import gc
import sys
from functools import cached_property
from typing import Any

import typer
from typer.main import get_command


class Quick(typer.Typer):
    """Collects no garbage until `asks`, or the end of the command; nor when the process ends, which frees all."""

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
        """All commands. Built once: services are forked from a process that has them, and share their memory."""
        return get_command(self)


def _check_texts(arguments: list[str]) -> None:
    """Exits with status 2 for one that is not in the encoding of this terminal: nothing here has such a name."""
    for each in arguments:
        if any("\ud800" <= character <= "\udfff" for character in each):
            typer.echo(f"{each.encode(errors='surrogateescape')!r} is no text in UTF-8", err=True)
            raise SystemExit(2)


def asks() -> None:
    """Collects garbage again: from now on the command calls a service, whose answer may be large."""
    gc.enable()


def works() -> None:
    """From now on this process works, with libraries that say so when something of theirs is left at the end."""
    gc.enable()
    atexit.unregister(gc.freeze)
