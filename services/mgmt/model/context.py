"""`${name}` in a text: variables, which may stand for texts with others in them. `$$` is a dollar."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from services.mgmt.model.faults import IllegalConfiguration

_VARIABLE: Final = re.compile(r"\$(?:\{([^}]*)\}|(\$))")
_JSON: Final = "json:"
_LONGEST: Final = 1 << 16
PREFIX: Final = "HOPLINE_CONTEXT_"
"""Of variables of the environment that are meant for objects: all others may be secrets."""


def interpolated(text: str, look_up: Callable[[str], str | None]) -> str:
    """What `look_up` knows nothing of stays as it is. Raises IllegalConfiguration for a circle, or too long a text."""
    return _Interpolation(look_up).of(text, ())


class _Interpolation:
    """Each variable is resolved once: one that names two that name two, and so on, would take for ever else."""

    def __init__(self, look_up: Callable[[str], str | None]) -> None:
        self._look_up = look_up
        self._known: dict[str, str | None] = {}

    def of(self, text: str, among: tuple[str, ...]) -> str:
        parts, length, at = [], 0, 0
        for match in _VARIABLE.finditer(text):
            for part in (text[at : match.start()], self._stand_in(match, among)):
                parts.append(part)
                length = _bounded(length + len(part))
            at = match.end()
        _bounded(length + len(text) - at)
        return "".join([*parts, text[at:]])

    def _stand_in(self, match: re.Match[str], among: tuple[str, ...]) -> str:
        if match[2]:
            return "$"
        name: str = match[1]
        found = self._resolved(name.removeprefix(_JSON), among)
        if found is None:
            return match[0]
        return json.dumps(found)[1:-1] if name.startswith(_JSON) else found

    def _resolved(self, name: str, among: tuple[str, ...]) -> str | None:
        if name in among:
            raise IllegalConfiguration(f"variables that stand for each other: {' → '.join((*among, name))}")
        if name not in self._known:
            found = self._look_up(name)
            self._known[name] = None if found is None else self.of(found, (*among, name))
        return self._known[name]


def _bounded(length: int) -> int:
    if length > _LONGEST:
        raise IllegalConfiguration(f"with its variables it has more than {_LONGEST} characters")
    return length


def visible(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables of the environment that are meant to be told, by their names without the prefix."""
    return {name.removeprefix(PREFIX): value for name, value in environment.items() if name.startswith(PREFIX)}
