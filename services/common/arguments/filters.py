"""Filters that a queue gives its consumers: Broker-J's `defaultFilters`, a table or the JSON of one.

{"red": {"x-filter-jms-selector": ["colour = 'red'"]}}      a name, the kind of filter, its arguments
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from services.common.selectors.selector import InvalidSelector, Selector, said_now, selector

SELECTOR: Final = "x-filter-jms-selector"


def wrong(value: object) -> str | None:
    """See Check."""
    return _wrong(value, selector)


def costly(value: object) -> str | None:
    """See Check: of one that is new, whose selectors may not cost much."""
    return _wrong(value, said_now)


def _wrong(value: object, compiled: Callable[[str], Selector]) -> str | None:
    try:
        table = json.loads(value) if isinstance(value, str) else value
        for text in _selectors(table):
            compiled(text)
    except (ValueError, TypeError, RecursionError) as error:
        return f"must be a table of filters, each with its kind and arguments: {_told(error)}"
    return None


def selector_of(value: Any) -> str:  # noqa: ANN401 - an argument's
    """One that says what all of them say; "" where there are none. Of what is not `wrong`."""
    texts = list(_selectors(json.loads(value) if isinstance(value, str) else value))
    return " AND ".join(f"({text})" for text in texts) if len(texts) > 1 else "".join(texts)


def _selectors(table: object) -> Iterator[str]:
    if not isinstance(table, Mapping):
        raise TypeError(f"{table!r} is no table")
    for name, given in table.items():
        if not isinstance(given, Mapping) or set(given) != {SELECTOR}:
            raise TypeError(f"{name} must be a table of {SELECTOR}, the only kind that is offered")
        [arguments] = given.values()
        if not isinstance(arguments, list | tuple) or len(arguments) != 1 or not isinstance(arguments[0], str):
            raise TypeError(f"{name} wants a list of one selector, not {arguments!r}")
        yield arguments[0]


def _told(error: Exception) -> str:
    if isinstance(error, InvalidSelector):
        return f"no selector, {error}"
    return "no JSON" if isinstance(error, json.JSONDecodeError) else str(error) or type(error).__name__
