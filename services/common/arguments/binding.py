"""What can be said of a binding, besides what its exchange's type makes of it: Broker-J's selector.

To add one: a row here, and what heeds it in `services/common/topology/source.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from services.common.arguments import filters
from services.common.arguments.argument import Argument
from services.common.arguments.checks import text
from services.common.arguments.reading import Wrong
from services.common.selectors.selector import InvalidSelector, Selector, selector


def _wrong(value: object) -> str | None:
    """See Check. Blank text selects everything."""
    if not isinstance(value, str):
        return text(value)
    try:
        _read(value)
    except InvalidSelector as error:
        return f"must be a selector, and {value!r} is none: {error}"
    return None


def _read(value: str) -> Selector | None:
    return selector(value) if value.strip() else None


SELECTOR: Final[Argument[Selector | None]] = Argument(filters.SELECTOR, _wrong, None, _read)
"""Which messages the binding passes on, of those that it matches."""

ARGUMENTS: Final[tuple[Argument[Any], ...]] = (SELECTOR,)


def check(table: Mapping[str, Any]) -> None:
    """Raises Wrong for a value that is none."""
    for each in ARGUMENTS:
        if each.name in table and (wrong := each.check(table[each.name])):
            raise Wrong(each.name, wrong)
