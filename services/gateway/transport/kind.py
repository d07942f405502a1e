"""Kinds of transport, plug-ins of group `transports`: what a peer may begin with before its protocol, on any port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from services.common.config import Settings
    from services.gateway.transport.arrival import Arrival


class Transport(Protocol):
    """One for all connections of a gateway."""

    secure: bool
    """Whether nobody on the way reads what is said over it."""
    needs: str
    """The setting that turns it on, for people."""

    def __init__(self, settings: Settings) -> None:
        """Raises CannotStart where the settings ask for what cannot be."""

    @property
    def on(self) -> bool:
        """Whether the settings give what it needs. Where they do not, nobody is told by it."""

    def begins(self, data: bytes) -> bool | None:
        """Whether a peer means it that begins so, with one byte at least; None while there is too little to tell."""

    def take(self, arrival: Arrival) -> None:
        """Puts itself in place of `arrival.transport`, of which `arrival.data` was read: now, or in a task of its.

        It ends with `arrival.look_again`, `arrival.leave_to`, or `arrival.refuse`.
        """
