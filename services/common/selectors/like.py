"""LIKE (JMS 3.8.1.1): `_` is any character, `%` any number of any, and what comes behind the escape is itself.

A text is looked through once for each part between two `%`, from where the part before was found first: patterns that
a regular expression takes for ever over take no longer than others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate

from services.common.selectors.values import Evaluate, LookUp


def like(value: Evaluate, pattern: str, escape: str) -> Evaluate:
    """Unknown of NULL; false of what is no text. `escape` is one character or none."""
    fits = matcher(pattern, escape)

    def evaluate(look_up: LookUp) -> bool | None:
        found = value(look_up)
        return None if found is None else isinstance(found, str) and fits(found)

    return evaluate


def matcher(pattern: str, escape: str = "") -> Callable[[str], bool]:
    """Whether all of a text is like the pattern."""
    parts = _parts(pattern, escape)
    first, last = _End(parts[0]), _End(parts[-1])
    if len(parts) == 1:
        return lambda text: len(text) == first.length and first.stands_at(text, 0)
    middle = [_found_behind(runs) for runs in parts[1:-1] if runs != [""]]

    def matches(text: str) -> bool:
        if not first.stands_at(text, 0):
            return False
        end = first.length
        for found_behind in middle:
            if (end := found_behind(text, end)) < 0:
                return False
        begin = len(text) - last.length
        return begin >= end and last.stands_at(text, begin)

    return matches


def steps(pattern: str, escape: str = "") -> int:
    """How many may be made at each character of a text: what is between two `%` is tried there, if `_` is in it."""
    return sum(_length(runs) for runs in _parts(pattern, escape)[1:-1] if len(runs) > 1)


class _End:
    """What stands before the first `%`, or behind the last: it has one place in a text."""

    def __init__(self, runs: list[str]) -> None:
        self.length = _length(runs)
        starts = accumulate((len(run) + 1 for run in runs), initial=0)
        self._pieces = [(at, run) for at, run in zip(starts, runs, strict=False) if run]

    def stands_at(self, text: str, place: int) -> bool:
        """Whether it is there."""
        if len(text) - place < self.length:
            return False
        return all(text.startswith(run, place + at) for at, run in self._pieces)


def _found_behind(runs: list[str]) -> Callable[[str, int], int]:
    """Of what stands between two `%`: where that ends which comes first behind a place of a text; -1: nowhere."""
    if len(runs) == 1:
        return partial(_plain_behind, runs[0])
    search = re.compile(".".join(map(re.escape, runs)), re.DOTALL).search
    return lambda text, place: found.end() if (found := search(text, place)) else -1


def _plain_behind(run: str, text: str, place: int) -> int:
    found = text.find(run, place)
    return found + len(run) if found >= 0 else -1


def _length(runs: list[str]) -> int:
    """Of the texts that it fits."""
    return sum(map(len, runs)) + len(runs) - 1


def _parts(pattern: str, escape: str) -> list[list[str]]:
    """What is between two `%`, each parted at each `_`."""
    if not escape:
        return [part.split("_") for part in pattern.split("%")]
    parts: list[list[list[str]]] = [[[]]]
    for character, is_itself in _characters(pattern, escape):
        if character == "%" and not is_itself:
            parts.append([[]])
        elif character == "_" and not is_itself:
            parts[-1].append([])
        else:
            parts[-1][-1].append(character)
    return [["".join(run) for run in part] for part in parts]


def _characters(pattern: str, escape: str) -> Iterator[tuple[str, bool]]:
    """Each, and whether it is escaped. An escape at the end is itself."""
    rest = iter(pattern)
    for character in rest:
        if character == escape:
            yield next(rest, escape), True
        else:
            yield character, False
