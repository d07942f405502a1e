"""A command that asks a question ends in a moment: to look for garbage meanwhile takes a quarter of its time."""

from __future__ import annotations

import atexit
import gc
from functools import cached_property
from typing import Any

import typer
from typer.main import get_command


class Quick(typer.Typer):
    """No garbage is looked for until `asks`, or the end of the command; nor when the process ends, which frees all."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as Typer's
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


def asks() -> None:
    """From now on the command talks to somebody, who may have much to say."""
    gc.enable()


def works() -> None:
    """From now on this process works, with libraries that say so when something of theirs is left at the end."""
    gc.enable()
    atexit.unregister(gc.freeze)
