"""A client's table of arguments, in whichever names, as what it says: by the names of arguments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from services.common.arguments.argument import Alias, Argument, Said, newly_wrong
from services.common.arguments.broker_j import ALIASES
from services.common.arguments.queue import ARGUMENTS


class Wrong(Exception):
    """What is wrong with one of them: `name` as the client says it, and why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"'{name}' {why}")
        self.name, self.why = name, why


class Saying(NamedTuple):
    """What one of the client's names says, and of what else it is a hint."""

    name: str
    says: Said
    implies: Said


KNOWN: Final[Mapping[str, Argument[Any] | Alias]] = {
    **{each.name: each for each in ARGUMENTS},
    **{each.name: each for each in ALIASES},
}
_DEFAULTS: Final = {each.name: each.default for each in ARGUMENTS}


def checked(table: Mapping[str, Any], further: Sequence[Saying] = ()) -> dict[str, Any]:
    """What it says. Raises Wrong for a value that is none, and for two names that contradict each other.

    Names that nobody knows say nothing, as in RabbitMQ. `further` is what others of its names say.
    """
    known = {name: value for name, value in table.items() if name in KNOWN}
    for name, value in known.items():
        if wrong := newly_wrong(KNOWN[name], value):
            raise Wrong(name, wrong)
    sayings = [*(_saying(name, value) for name, value in known.items()), *further]
    _check_hints(sayings, _check_sayings(sayings))
    return _together(sayings)


def said(table: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a table that was accepted once: what was no known name then may say what is none, and is left out."""
    known = ((name, value) for name, value in table.items() if name in KNOWN)
    return _together([_saying(name, value) for name, value in known if not KNOWN[name].check(value)])


def _saying(name: str, value: Any) -> Saying:  # noqa: ANN401 - a value's
    known = KNOWN[name]
    return Saying(name, known.says(value) if isinstance(known, Alias) else {name: value}, known.implies)


def _together(sayings: list[Saying]) -> dict[str, Any]:
    """What is said goes before what is implied. A default that is implied is not said: RabbitMQ tells the two apart."""
    implied = {name: value for each in sayings for name, value in each.implies.items() if value != _DEFAULTS[name]}
    return implied | {name: value for each in sayings for name, value in each.says.items()}


def _check_sayings(sayings: list[Saying]) -> Collection[str]:
    """The arguments of which something is said. Raises Wrong where two names say different things."""
    found: dict[str, tuple[str, Any]] = {}
    for each in sayings:
        for argument, value in each.says.items():
            other, before = found.setdefault(argument, (each.name, value))
            if before != value:
                raise Wrong(each.name, f"says something else than '{other}'")
    return found.keys()


def _check_hints(sayings: list[Saying], found: Collection[str]) -> None:
    """Raises Wrong where two names mean different things by leaving an argument out: somebody has to say it."""
    hints: dict[str, tuple[str, Any]] = {}
    for each in sayings:
        for argument, value in each.implies.items():
            other, before = hints.setdefault(argument, (each.name, value))
            if before != value and argument not in found:
                raise Wrong(each.name, f"has another '{argument}' in mind than '{other}': say which")
