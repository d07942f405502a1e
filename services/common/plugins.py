"""What comes in kinds is found by entry-point group and chosen by name, the built-in kinds too."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, distributions
from typing import Any

from services.common.errors import InternalError


class UnknownPlugin(InternalError):
    """No kind of that name is installed in the group."""


@cache
def load(group: str, name: str) -> Any:  # noqa: ANN401 - a plug-in's type is known to who asks for its group
    """The object registered as `name` in `hopline.<group>`; raises UnknownPlugin with the names there are."""
    return entry(group, name).load()


@cache
def names(group: str) -> tuple[str, ...]:
    """The names registered in `hopline.<group>`, sorted."""
    return tuple(sorted(_installed(f"hopline.{group}")))


@cache
def groups() -> tuple[str, ...]:
    """Every X of which something is registered in `hopline.X`, sorted."""
    return tuple(sorted({point.group.removeprefix("hopline.") for point in _all()}))


def entry(group: str, name: str) -> EntryPoint:
    """What is registered as `name`, which `load` loads: where it is, and whose it is. Raises UnknownPlugin."""
    found = _installed(f"hopline.{group}").get(name)
    if found is None:
        raise UnknownPlugin(f"no {group} named {name!r}; installed: {', '.join(names(group))}")
    return found


@cache
def _installed(group: str) -> dict[str, EntryPoint]:
    """By name; of several that have one name, the one that is found first."""
    return {point.name: point for point in reversed(_all()) if point.group == group}


@cache
def _all() -> tuple[EntryPoint, ...]:
    """Of every group of ours: to look through all that is installed takes tens of milliseconds, each time."""
    points = (point for distribution in distributions() for point in distribution.entry_points)
    return tuple(point for point in points if point.group.startswith("hopline."))
