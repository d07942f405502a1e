"""Where services say what happened."""

from __future__ import annotations

from typing import Protocol

from services.common.bus.facts import Facts


class Events(Protocol):
    """Takes facts at any time and at once."""

    def publish(self, facts: Facts) -> None:
        """Never waits and never fails."""


class Unheard:
    """Nobody listens."""

    def publish(self, facts: Facts) -> None:
        """Forgets them."""


UNHEARD = Unheard()
