"""What can be said of a binding, besides what its exchange's type makes of it: Broker-J's selector and no-local.

To add one: a row here, and what heeds it in `services/common/topology/source.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from services.common.arguments import filters
from services.common.arguments.argument import Argument, newly_wrong
from services.common.arguments.checks import boolean, text
from services.common.arguments.reading import Wrong
from services.common.selectors.selector import InvalidSelector, Selector, said_now, selector


def _wrong(value: object) -> str | None:
    """See Check. Blank text selects everything."""
    return text(value) if not isinstance(value, str) else _mistaken(value, selector)


def _costly(value: object) -> str | None:
    return text(value) if not isinstance(value, str) else _mistaken(value, said_now)


def _mistaken(value: str, compiled: Callable[[str], Selector]) -> str | None:
    try:
        _read(value, compiled)
    except InvalidSelector as error:
        return f"must be a selector, and {value!r} is none: {error}"
    return None


def _read(value: str, compiled: Callable[[str], Selector] = selector) -> Selector | None:
    return compiled(value) if value.strip() else None


SELECTOR: Final[Argument[Selector | None]] = Argument(filters.SELECTOR, _wrong, None, _read, check_new=_costly)
"""Which messages the binding passes on, of those that it matches."""

NO_LOCAL: Final[Argument[bool]] = Argument("x-qpid-no-local", boolean, False)
"""To a queue: it passes on nothing that was published on a connection which consumes there."""

ARGUMENTS: Final[tuple[Argument[Any], ...]] = (SELECTOR, NO_LOCAL)


def check(table: Mapping[str, Any]) -> None:
    """Raises Wrong for a value that is none."""
    for each in ARGUMENTS:
        if each.name in table and (wrong := newly_wrong(each, table[each.name])):
            raise Wrong(each.name, wrong)
