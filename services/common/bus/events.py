"""The port by which services report events."""

from __future__ import annotations

from typing import Protocol

from services.common.bus.facts import Facts


class Events(Protocol):
    """Takes facts at any time, and returns at once."""

    def publish(self, facts: Facts) -> None:
        """Never waits and never fails."""


class Unheard:
    """For services without a bus."""

    def publish(self, facts: Facts) -> None:
        """Drops them."""


UNHEARD = Unheard()
