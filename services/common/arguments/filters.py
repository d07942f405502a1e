"""Filters that a queue gives its consumers: Broker-J's `defaultFilters`, a table or the JSON of one.

{"red": {"x-filter-jms-selector": ["colour = 'red'"]}}      a name, the kind of filter, its arguments
{"new": {"x-qpid-replay-period": ["60"]}}                   what came in the last minute before one comes, and since
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from services.common.selectors.selector import InvalidSelector, Selector, check_words, said_now, selector

SELECTOR: Final = "x-filter-jms-selector"
REPLAY: Final = "x-qpid-replay-period"
_KINDS: Final = frozenset({SELECTOR, REPLAY})
_SECONDS_AT_MOST: Final = 1 << 32


def wrong(value: object) -> str | None:
    """See Check."""
    return _wrong(value, selector)


def costly(value: object) -> str | None:
    """See Check: of one that is new, whose selectors may not cost much: they are one in the end.

    Hundreds that are too much together are not compiled one by one first.
    """
    return _too_much(value) or _wrong(value, said_now) or _wrong_together(selector_of(value))


def texts(value: object) -> list[str]:
    """Its selectors, and what they are together; none of what is `wrong`."""
    try:
        together, each = selector_of(value), _selectors(_given(json.loads(value) if isinstance(value, str) else value))
    except (ValueError, TypeError, RecursionError):
        return []
    return [text for text in dict.fromkeys([*each, together]) if text]


def _too_much(value: object) -> str | None:
    try:
        for text in texts(value)[1:][-1:]:
            check_words(text)
    except InvalidSelector as error:
        return f"must be filters that are one selector together: {_told(error)}"
    return None


def _wrong(value: object, compiled: Callable[[str], Selector]) -> str | None:
    try:
        given = list(_given(json.loads(value) if isinstance(value, str) else value))
        for text in _selectors(given):
            compiled(text)
        for period in _periods(given):
            seconds(period)
    except (ValueError, TypeError, RecursionError) as error:
        return f"must be a table of filters, each with its kind and arguments: {_told(error)}"
    return None


def _wrong_together(text: str) -> str | None:
    try:
        if text:
            said_now(text)
    except InvalidSelector as error:
        return f"must be filters that are one selector together: {_told(error)}"
    return None


def selector_of(value: Any) -> str:  # noqa: ANN401 - an argument's
    """One that says what all of them say; "" where there are none. Of what is not `wrong`."""
    texts = list(_selectors(_given(json.loads(value) if isinstance(value, str) else value)))
    return " AND ".join(f"({text})" for text in texts) if len(texts) > 1 else "".join(texts)


def replay_of(value: Any) -> int | None:  # noqa: ANN401 - an argument's
    """The shortest replay period that they say, in seconds; None where there is none. Of what is not `wrong`."""
    given = _given(json.loads(value) if isinstance(value, str) else value)
    return min(map(seconds, _periods(given)), default=None)


def seconds(value: object) -> int:
    """A replay period, a number or the text of one. Raises ValueError, TypeError for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError(f"a replay period is a number of seconds, not {value!r}")
    found = int(value)
    if not 0 <= found <= _SECONDS_AT_MOST:
        raise ValueError(f"a replay period must be 0 to {_SECONDS_AT_MOST} seconds, not {found}")
    return found


def _selectors(given: Iterable[tuple[str, Any]]) -> list[str]:
    """Raises TypeError for one that is no text."""
    texts = [argument for kind, argument in given if kind == SELECTOR]
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{SELECTOR} wants a list of one selector, not {[text]!r}")
    return texts


def _periods(given: Iterable[tuple[str, Any]]) -> list[Any]:
    return [argument for kind, argument in given if kind == REPLAY]


def _given(table: object) -> Iterator[tuple[str, Any]]:
    """Kinds of filters, with the one argument that each has."""
    if not isinstance(table, Mapping):
        raise TypeError(f"{table!r} is no table")
    for name, given in table.items():
        if not isinstance(given, Mapping) or len(given) != 1 or not given.keys() <= _KINDS:
            raise TypeError(f"{name} must be a table of one kind that is offered: {', '.join(sorted(_KINDS))}")
        [(kind, arguments)] = given.items()
        if not isinstance(arguments, list | tuple) or len(arguments) != 1:
            raise TypeError(f"{name} wants a list of one argument, not {arguments!r}")
        yield kind, arguments[0]


def _told(error: Exception) -> str:
    if isinstance(error, InvalidSelector):
        return f"no selector, {error}"
    return "no JSON" if isinstance(error, json.JSONDecodeError) else str(error) or type(error).__name__
