"""LIKE (JMS 3.8.1.1): `_` is any character, `%` any number of any, and what comes behind the escape is itself.

A text is looked through once for each part between two `%`, from where the part before was found first: patterns that
a regular expression takes for ever over take no longer than others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

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
    first, *others = map(_Part.of, _parts(pattern, escape))
    if not others:
        return lambda text: len(text) == first.length and first.stands_at(text, 0)
    *middle, last = others

    def matches(text: str) -> bool:
        if not first.stands_at(text, 0):
            return False
        end = first.length
        for part in middle:
            found = part.fits.search(text, end)
            if found is None:
                return False
            end = found.end()
        begin = len(text) - last.length
        return begin >= end and last.stands_at(text, begin)

    return matches


def steps(pattern: str, escape: str = "") -> int:
    """How many may be made at each character of a text: what is between two `%` is tried there, if `_` is in it."""
    return sum(len(part) for part in _parts(pattern, escape)[1:-1] if "." in part)


class _Part(NamedTuple):
    """What stands between two `%`: it fits texts of one length."""

    fits: re.Pattern[str]
    length: int

    @classmethod
    def of(cls, characters: list[str]) -> _Part:
        """Each a regular expression."""
        return cls(re.compile("".join(characters), re.DOTALL), len(characters))

    def stands_at(self, text: str, place: int) -> bool:
        """Whether it is there."""
        return self.fits.match(text, place) is not None


def _parts(pattern: str, escape: str) -> list[list[str]]:
    """Its characters as regular expressions, parted at each `%`."""
    parts: list[list[str]] = [[]]
    for character, is_itself in _characters(pattern, escape):
        if character == "%" and not is_itself:
            parts.append([])
        else:
            parts[-1].append("." if character == "_" and not is_itself else re.escape(character))
    return parts


def _characters(pattern: str, escape: str) -> Iterator[tuple[str, bool]]:
    """Each, and whether it is escaped. An escape at the end is itself."""
    rest = iter(pattern)
    for character in rest:
        if character == escape:
            yield next(rest, escape), True
        else:
            yield character, False
