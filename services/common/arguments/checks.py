"""What is wrong with an argument's value, in words for whoever declared it; None when nothing is."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

from services.common.message import LONGEST_NAME

Check: TypeAlias = Callable[[Any], str | None]

COUNT_AT_MOST: Final = (1 << 63) - 1
MS_AT_MOST: Final = (1 << 50) - 1
"""Of a time in milliseconds: any that somebody may mean, and added to the present it is a number that can be stored."""


def integer(least: int, most: int = COUNT_AT_MOST) -> Check:
    """A whole number of that range, both ends included."""

    def check(value: object) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return f"must be an integer, not {type(value).__name__}"
        return None if least <= value <= most else f"must be {least} to {most}, not {value}"

    return check


def text(value: object) -> str | None:
    """Any text."""
    return None if isinstance(value, str) else f"must be text, not {type(value).__name__}"


def name(value: object) -> str | None:
    """A name, or a routing key: text for which the wire has room (AMQP 0-9-1, 4.2.5.3, short strings)."""
    if not isinstance(value, str):
        return text(value)
    try:
        fits = len(value.encode()) <= LONGEST_NAME
    except UnicodeEncodeError:  # JSON may have half of a character
        return "must be text, of whole characters"
    return None if fits else f"must be no longer than {LONGEST_NAME} bytes"


def key(value: object) -> str | None:
    """The name of a header, which is not empty."""
    return "must be the name of a header" if value == "" else name(value)


def boolean(value: object) -> str | None:
    """True or false."""
    return None if isinstance(value, bool) else f"must be true or false, not {type(value).__name__}"


def truth(value: object) -> str | None:
    """The same, of which clients of Qpid say it as text too."""
    known = isinstance(value, bool) or (isinstance(value, str) and value.lower() in {"true", "false"})
    return None if known else f"must be true or false, not {value!r}"


def is_true(value: object) -> bool:
    """Of what has passed that."""
    return value is True or str(value).lower() == "true"


def one_of(choices: Collection[str]) -> Check:
    """One of some words."""

    def check(value: object) -> str | None:
        known = isinstance(value, str) and value in choices  # a table could not even be looked for
        return None if known else f"must be one of {', '.join(sorted(choices))}, not {value!r}"

    return check
