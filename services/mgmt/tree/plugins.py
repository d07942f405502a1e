"""Plugin: entry points, as the process that manages has them. Services of one release have the same."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from services.common import plugins
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.plugin import Plugin
from services.mgmt.tree.category import Keeper, Own


class Plugins(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = Plugin

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:  # noqa: ARG002 - the broker
        for each in _all():
            yield each, ""


@cache
def _all() -> tuple[dict[str, Any], ...]:
    """Nothing is installed into a process that runs; to read of which release each is takes milliseconds."""
    return tuple(_told(group, name) for group in plugins.groups() for name in plugins.names(group))


def _told(group: str, name: str) -> dict[str, Any]:
    point = plugins.entry(group, name)
    its = {"package": point.dist.name, "version": point.dist.version} if point.dist else {}
    return {"name": f"{group}:{name}", "type": group, "chosenBy": name, "implementation": point.value, **its}
