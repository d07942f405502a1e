"""How large a regular expression gets when it is made: by copying what it repeats, which nothing stops.

So that is asked before, of the text alone. Where its parts are not told apart for certain, all that repeats is taken to
be inside one another. What calls itself, and what is nearly there, no clock stops in time while it is looked for.
"""

from __future__ import annotations

import math
from typing import Final

import regex

_DEEPEST: Final = 50  # groups inside one another: each takes several calls to read
_DIGITS: Final = 9  # so many are too much, whatever comes behind
_ESCAPED: Final = regex.compile(r"\\.", regex.DOTALL)
_TIMES: Final = regex.compile(r"\{(\d*)(?:,(\d*))?\}")
_PARTS: Final = regex.compile(
    r"\[\^?[^\]\[^][^\[\]]*\]|(?P<times>\{(?P<least>\d*)(?:,(?P<most>\d*))?\})|.", regex.DOTALL
)
_SPACED: Final = regex.compile(r"\(\?[A-Za-z0-9]*x")
_UNCERTAIN: Final = regex.compile(rf"{_SPACED.pattern}|\(\?#")
_REFUSED: Final = {
    "(?x), in which repetitions may hold spaces,": _SPACED,
    "what calls itself": regex.compile(r"\(\?(?:R|&|P[>&]|[+-]?\d)"),
    "what is nearly there, as {e<=1},": regex.compile(r"\{(?:\d+<=?)?\d*[deis][<,:}+]"),
}


def check_kind(pattern: str) -> None:
    """Raises ValueError for what nothing bounds, however short it is."""
    plain = _plain(pattern)
    for name, refused in _REFUSED.items():
        if refused.search(plain):
            raise ValueError(f"{name} is not for regular expressions here")


def check_size(pattern: str, longest: int, most: int) -> None:
    """Raises ValueError for more than `longest` characters, or than `most` if what repeats were written as often."""
    if len(pattern) > longest:
        raise ValueError(f"longer than {longest} characters")
    plain = _plain(pattern)
    if _depth(plain) > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} groups inside one another")
    if _at_most(plain) > most and _written_out(plain) > most:
        raise ValueError(f"more than {most} characters, if what repeats were written as often")


def _plain(pattern: str) -> str:
    return _ESCAPED.sub("_", pattern)


def _depth(plain: str) -> int:
    depth = deepest = 0
    for character in plain:
        depth += (character == "(") - (character == ")")
        deepest = max(depth, deepest)
    return deepest


def _at_most(plain: str) -> int:
    """As if all that repeats were inside one another."""
    return len(plain) * math.prod(_times(least, most) for least, most in _TIMES.findall(plain))


def _written_out(plain: str) -> float:
    """As the parts are; infinite where that is not certain."""
    sizes, last = [0], 0  # of the groups that are open, and of the last part
    for part in _PARTS.finditer(plain):
        if part[0] == "(":
            sizes.append(0)
            continue
        if part[0] == "[":
            return math.inf
        if part[0] == ")" and len(sizes) > 1:
            more = last = sizes.pop() + 1
        elif part["times"]:
            times = _times(part["least"], part["most"])
            more, last = last * (times - 1), last * times
        else:
            more = last = 1
        sizes[-1] += more
    return sizes[0] if len(sizes) == 1 and not _UNCERTAIN.search(plain) else math.inf


def _times(least: str, most: str | None) -> int:
    return max(int(least[:_DIGITS] or 0), int((most or "")[:_DIGITS] or 0), 1)
