"""Regular expressions of permissions: RabbitMQ's are PCRE's, found anywhere in a name; an empty one fits no name.

Whoever may set them may be wrong about them, and names come from clients: one that takes too long fits nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import regex

_PATIENCE = 0.05  # seconds: a name has 255 bytes at most
_REMEMBERED = 4096


def check_expression(text: str) -> str:
    """Itself; raises ValueError where it is no regular expression."""
    try:
        _compiled(text)
    except regex.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None
    return text


def fits(text: str, name: str) -> bool:
    """Whether the expression is found in the name."""
    if not text:
        return not name
    try:
        return _compiled(text).search(name, timeout=_PATIENCE) is not None
    except (TimeoutError, regex.error):
        return False


def expanded(text: str, values: Mapping[str, str]) -> str:
    """With `{name}` in the place of each of the values, taken literally."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", regex.escape(value))
    return text


@lru_cache(_REMEMBERED)
def _compiled(text: str) -> regex.Pattern[str]:
    return regex.compile(text)
