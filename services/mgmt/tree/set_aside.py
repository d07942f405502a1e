"""What is stopped: its record is taken away, so that nobody acts by it, and is kept here as it was until it is back.

Where there is a record of its name again, somebody has made another one meanwhile, and that is what counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from services.common.errors import AccessRefused, PreconditionFailed
from services.mgmt.model.configured_object import ACTIVE, ConfiguredObject
from services.mgmt.tree.house import House, key_of
from services.mgmt.tree.mirror import OVERLAY

_ASIDE: Final = "setAside"
_NAME: Final = 1
"""Its place in the key of what is kept of an object right below the broker."""


class Aside(NamedTuple):
    """The state that it is to be in, and its record's value."""

    state: str
    value: Mapping[str, Any]


class SetAside:
    """Of one category, and the kind of its records."""

    def __init__(self, house: House, category: str, record_kind: str) -> None:
        self._house = house
        self._prefix = f'["{category}",'
        self._kind = record_kind

    def all(self) -> Iterator[tuple[str, Aside]]:
        """By name, those that have no record."""
        there = self._house.mirror.tables[self._kind]
        for key, kept in list(self._house.overlays.items()):
            if key.startswith(self._prefix) and (said := kept.value.get(_ASIDE)):
                name = json.loads(key)[_NAME]
                if name not in there:
                    yield name, Aside(**said)

    def check_changes(self, found: ConfiguredObject) -> None:
        """Raises PreconditionFailed for one that is set aside: whoever makes it act again reads it as it is."""
        if is_aside(found):
            state = found.value("desiredState")
            raise PreconditionFailed(
                f"{found.category} '{found.actual['name']}' is {state}: it is changed when it is {ACTIVE}"
            )

    async def away(self, found: ConfiguredObject, state: str, who: str) -> None:
        """Notes it, or that it is to be in another state now; its record is for the caller to remove.

        Raises AccessRefused for one that is on no record.
        """
        name = found.actual["name"]
        kept = self._house.mirror.tables[self._kind].get(name)
        value = kept.value if kept else (found.actual.get(_ASIDE) or {}).get("value")
        if value is None:
            raise AccessRefused(f"{found.category} '{name}' is of the settings, and changes with them only")
        await self._keep(found, Aside(state, value), who)

    def value(self, found: ConfiguredObject) -> Mapping[str, Any]:
        """Of the record that it had."""
        return Aside(**found.actual[_ASIDE]).value

    async def back(self, found: ConfiguredObject, who: str) -> None:
        """It has its record again."""
        await self._keep(found, None, who)

    async def delete(self, found: ConfiguredObject) -> None:
        """It is nowhere any more."""
        await self._house.forget(found)
        await self._house.seen(OVERLAY, key_of(found), there=False)

    async def _keep(self, found: ConfiguredObject, aside: Aside | None, who: str) -> None:
        await self._house.keep(found, {_ASIDE: aside._asdict() if aside else None}, who)


def is_aside(found: ConfiguredObject) -> bool:
    """Whether it has no record."""
    return bool(found.value("desiredState") != ACTIVE)
