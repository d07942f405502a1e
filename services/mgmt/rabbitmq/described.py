"""What is said of virtual hosts beside their names: their description is that of the tree, and the rest lies beside it.

https://www.rabbitmq.com/docs/vhosts#metadata
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from services.common.audit.acting import acting
from services.mgmt.tree.house import House, key_of_host

_BESIDE: Final = "rabbitmq"
"""Where tags and the default type of queues are in the record; no attribute of the tree is called that."""
_DESCRIPTION: Final = "description"
CLASSIC: Final = "classic"
TYPES: Final = frozenset({CLASSIC, "quorum"})
"""Of queues for which clients say none: all that are the same here."""


def described(house: House, name: str) -> dict[str, Any]:
    """As RabbitMQ tells it as `metadata`."""
    kept = house.kept_at(key_of_host(house.mirror, name))
    return {_DESCRIPTION: kept.get(_DESCRIPTION, ""), "tags": [], **kept.get(_BESIDE, {})}


async def describe(house: House, name: str, said: Mapping[str, Any]) -> None:
    """Of one that is there; what is not said stays. Nothing is written where nothing changes."""
    former = described(house, name)
    if all(former.get(key) == value for key, value in _listed(said).items()):
        return

    def changed(kept: Mapping[str, Any]) -> Mapping[str, Any]:
        beside = {**kept.get(_BESIDE, {}), **_listed(said)}
        description = beside.pop(_DESCRIPTION, kept.get(_DESCRIPTION))
        return {_BESIDE: beside} | ({} if description is None else {_DESCRIPTION: description})

    await house.change_at(key_of_host(house.mirror, name), changed, acting())


def _listed(said: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON gives it back."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in said.items()}
