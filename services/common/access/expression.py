"""Regular expressions of permissions: as RabbitMQ's, PCRE, found anywhere in a name; an empty one fits no name.

Users who set them make mistakes, and names come from clients: an expression that takes too long fits nothing, and so
does one on record that is too large to be made (`../expression_size.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import regex

from services.common.expression_size import check_kind, check_size

LONGEST: Final = 4096
"""Characters."""
_MOST: Final = 10_000  # characters, if what repeats were written as often: some 30 ms of the event loop
MOST_KEPT: Final = 100_000
"""The same of what is on record, with names in their places: ten times as long, once for each."""
_PATIENCE = 0.05  # seconds
_REMEMBERED = 4096
_LONGEST = 255  # bytes of a name in AMQP 0-9, for which that is enough; AMQP 1.0's are as long as a frame
_REPEATED = regex.compile(r"[*+{?(]")
_FEW = 2  # repetitions, or groups, in a row: the time is the cube of a name's length at worst
_GROUP_REPEATED = regex.compile(r"\)[*+{?]")


def check_expression(text: str) -> str:
    """The text itself; raises ValueError where it is no regular expression, too large, or one that no clock stops."""
    check_kind(text)
    check_size(text, LONGEST, _MOST)
    try:
        _compiled(text)
    except regex.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None
    return text


def fits(text: str, name: str) -> bool:
    """Whether the expression is found in the name."""
    return fitting(text)(name)


@lru_cache(_REMEMBERED)
def fitting(text: str) -> Callable[[str], bool]:
    """The same as a function, for many names."""
    search = searching(text)

    def found(name: str) -> bool:
        try:
            return search(name)
        except TimeoutError:
            return False

    return found if text else lambda name: not name


@lru_cache(_REMEMBERED)
def searching(text: str) -> Callable[[str], bool]:
    """Whether it is found in a name, for who has to know of one that takes too long: it raises TimeoutError."""
    try:
        check_size(text, MOST_KEPT, MOST_KEPT)
        compiled, usual = _compiled(text)
    except (ValueError, regex.error):
        return lambda _: False
    search = compiled.search

    def found(name: str) -> bool:
        patience = usual if len(name) <= _LONGEST else _PATIENCE
        return (search(name, timeout=patience) if patience else search(name)) is not None

    return found


@lru_cache(_REMEMBERED)
def expanded(text: str, user: str, virtual_host: str) -> str:
    """The expression with `{username}` and `{vhost}` replaced by these names, which are taken literally."""
    for name, value in (("{username}", user), ("{vhost}", virtual_host)):
        if name in text:
            text = text.replace(name, regex.escape(value))
    return text


def _compiled(text: str) -> tuple[regex.Pattern[str], float | None]:
    """With its time limit, or None for one that cannot take long: to read the clock takes longer than most searches."""
    simple = len(_REPEATED.findall(text)) <= _FEW and not _GROUP_REPEATED.search(text)
    return regex.compile(text), None if simple else _PATIENCE
