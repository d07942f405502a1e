"""A command that asks a question ends in a moment: to look for garbage meanwhile takes a quarter of its time."""

from __future__ import annotations

import atexit
import gc
from typing import Any

import typer


class Quick(typer.Typer):
    """No garbage is looked for until `asks`, or the end of the command; nor when the process ends, which frees all."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as Typer's
        gc.disable()
        atexit.register(gc.freeze)
        try:
            return super().__call__(*arguments, **options)
        finally:
            gc.enable()


def asks() -> None:
    """From now on the command talks to somebody, who may have much to say."""
    gc.enable()


def works() -> None:
    """From now on this process works, with libraries that say so when something of theirs is left at the end."""
    gc.enable()
    atexit.unregister(gc.freeze)
