"""Commands without garbage collection, other commands, and plug-ins of Pydantic: they end in a moment, of which those
would take a quarter, a tenth, and a twentieth: plug-ins are looked for in every package that is installed.
"""

from __future__ import annotations

import atexit
import copy
import gc
import os
import sys
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer
from typer.main import get_command, get_command_name, get_group

from services.cli.unseen import overwrite_passwords

if TYPE_CHECKING:
    from typer.models import CommandInfo


class Quick(typer.Typer):
    """Collects no garbage until `asks`, or the end of the command; nor when the process ends, which frees all.

    A group is imported when it, or all of them, are asked for.
    """

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - as Typer's
        super().__init__(**options)
        self._groups: dict[str, Callable[[], typer.Typer]] = {}

    def add_group(self, name: str, load: Callable[[], typer.Typer]) -> None:
        """As `add_typer`, of what `load` imports."""
        self._groups[name] = load

    def __call__(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as Typer's
        overwrite_passwords(sys.argv[1:])
        _check_texts(sys.argv[1:])
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
        gc.disable()
        atexit.register(gc.freeze)
        try:
            return (self.alone(*sys.argv[1:2]) or self.built)(*arguments, **options)
        finally:
            gc.enable()

    def alone(self, name: str = "") -> Any:  # noqa: ANN401 - as `built`
        """A group with nothing but the command, or the group, of that name; None where there is none."""
        one = self._with([name] if name in self._groups else [])
        one.registered_commands = [each for each in self.registered_commands if _name_of(each) == name]
        return get_group(one) if one.registered_groups or one.registered_commands else None

    @cached_property
    def built(self) -> Any:  # noqa: ANN401 - click's, which Typer has a copy of
        """All commands, of which help and completion tell."""
        return get_command(self.whole)

    @cached_property
    def whole(self) -> typer.Typer:
        """With all groups, as Typer knows it."""
        return self._with(self._groups)

    def _with(self, groups: Iterable[str]) -> typer.Typer:
        one = copy.copy(self)
        one.registered_groups = []
        for name in groups:
            one.add_typer(self._groups[name](), name=name)
        return one


def _name_of(command: CommandInfo) -> str:
    return command.name or get_command_name(command.callback.__name__ if command.callback else "")


def _check_texts(arguments: list[str]) -> None:
    """Exits with status 2 for one that is not in the encoding of this terminal: nothing here has such a name."""
    for each in arguments:
        if any("\ud800" <= character <= "\udfff" for character in each):
            typer.echo(f"{each.encode(errors='surrogateescape')!r} is no text in UTF-8", err=True)
            raise SystemExit(2)


def asks() -> None:
    """Collects garbage again, of what comes from now on: the command calls a service, whose answer may be large."""
    if not gc.isenabled():
        gc.freeze()  # what was imported stays: to look through it takes longer than the call
        gc.enable()


def works() -> None:
    """From now on this process works, with libraries that say so when something of theirs is left at the end."""
    gc.enable()
    atexit.unregister(gc.freeze)
