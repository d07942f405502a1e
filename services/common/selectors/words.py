"""How much there is of a selector, told without parsing it: that takes a hundredth of the time."""

from __future__ import annotations

import re
from typing import Final

_TEXT: Final = r"'(?:[^']|'')*'"
_WORD: Final = re.compile(
    rf"""
    (?P<nothing> \s+ | --[^\n]* | /\*.*?(?:\*/|\Z) )
    | \(\s*{_TEXT}(?:\s*,\s*{_TEXT})*\s*\)  # what IN has behind it
    | {_TEXT} | "(?:[^"]|"")*" | [\w$.]+ | .
    """,
    re.VERBOSE | re.DOTALL,
)


def words(text: str) -> int:
    """Words and signs, a list of texts as one; of what is no selector, about."""
    return sum(found.lastgroup is None for found in _WORD.finditer(text))
