"""Finds plug-ins by entry-point group and name, the built-in ones too."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, distributions
from typing import Any

from services.common.errors import InternalError


class UnknownPlugin(InternalError):
    """No plug-in of that name is installed in the group."""


@cache
def load(group: str, name: str) -> Any:  # noqa: ANN401 - the caller knows the type of its group's plug-ins
    """The object registered as `name` in `hopline.<group>`; raises UnknownPlugin, which lists the names."""
    return entry(group, name).load()


@cache
def names(group: str) -> tuple[str, ...]:
    """The names registered in `hopline.<group>`, sorted."""
    return tuple(sorted(_installed(f"hopline.{group}")))


@cache
def groups() -> tuple[str, ...]:
    """Every X for which `hopline.X` has an entry, sorted."""
    return tuple(sorted({point.group.removeprefix("hopline.") for point in _all()}))


def entry(group: str, name: str) -> EntryPoint:
    """The entry point of `name`, which `load` loads: its module and its distribution. Raises UnknownPlugin."""
    found = _installed(f"hopline.{group}").get(name)
    if found is None:
        raise UnknownPlugin(f"no {group} named {name!r}; installed: {', '.join(names(group))}")
    return found


@cache
def _installed(group: str) -> dict[str, EntryPoint]:
    """Entry points by name; of several with one name, the first that is found."""
    return {point.name: point for point in reversed(_all()) if point.group == group}


@cache
def _all() -> tuple[EntryPoint, ...]:
    """Entry points of all our groups: to search everything installed takes tens of milliseconds each time."""
    points = (point for distribution in distributions() for point in distribution.entry_points)
    return tuple(point for point in points if point.group.startswith("hopline."))
