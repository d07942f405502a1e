"""What comes in kinds is found by entry-point group and chosen by name, the built-in kinds too."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from services.common.errors import InternalError


class UnknownPlugin(InternalError):
    """No kind of that name is installed in the group."""


@cache
def load(group: str, name: str) -> Any:  # noqa: ANN401 - a plug-in's type is known to who asks for its group
    """The object registered as `name` in `hopline.<group>`; raises UnknownPlugin with the names there are."""
    found = entry_points(group=f"hopline.{group}", name=name)
    if not found:
        raise UnknownPlugin(f"no {group} named {name!r}; installed: {', '.join(names(group))}")
    return next(iter(found)).load()


@cache
def names(group: str) -> tuple[str, ...]:
    """The names registered in `hopline.<group>`, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=f"hopline.{group}")}))
