"""What of many objects is shown, and in which order. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.sorting import as_text, places
from services.mgmt.model.steps import Steps

Look = Callable[[ConfiguredObject, str], Any]
Read = Callable[[list[ConfiguredObject], str], list[Any]]
"""An attribute or a statistic of many."""
MOST_ORDERS: Final = 10
"""What objects are sorted by: of thousands each takes its time."""
_AT_ONCE: Final = 500  # objects of which a value is read


def check_name(kind: type[ConfiguredObject], name: str) -> None:
    """Raises IllegalConfiguration where it has neither an attribute nor a statistic of that name."""
    if name not in kind.attributes and name not in kind.statistics:
        raise IllegalConfiguration(f"{kind.category} has neither an attribute nor a statistic '{name}'")


def filtered(
    found: list[ConfiguredObject], wanted: Mapping[str, Sequence[str]], look: Look
) -> Steps[list[ConfiguredObject]]:
    """Those of which each attribute that is named has one of the values that are named."""
    if not wanted:
        return found
    fitting = []
    for each in found:
        if all(as_text(look(each, name)) in values for name, values in wanted.items()):
            fitting.append(each)
        yield
    return fitting


def ordered(
    found: list[ConfiguredObject], order: str, kind: type[ConfiguredObject], read: Read
) -> Steps[list[ConfiguredObject]]:
    """By `name, queueDepthMessages desc`; the last named counts least. What has no value comes first."""
    orders = [part.split() for part in order.split(",") if part.strip()]
    if len(orders) > MOST_ORDERS:
        raise IllegalConfiguration(f"orderBy: no more than {MOST_ORDERS} of them")
    for each in reversed(orders):
        name, direction = each[0], (each[1:] or ["asc"])[0].lower()
        if len(each) > 2 or direction not in {"asc", "desc"}:
            raise IllegalConfiguration(f"orderBy: a name, and asc or desc, is wanted, not {' '.join(each)!r}")
        check_name(kind, name)
        values = list[Any]()
        for start in range(0, len(found), _AT_ONCE):
            values += read(found[start : start + _AT_ONCE], name)
            yield
        found = [found[place] for place in (yield from places(values, descending=direction == "desc"))]
        yield
    return found
