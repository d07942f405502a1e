"""Kinds of transport, plug-ins of group `transports`: layers such as TLS, on top of which a protocol is spoken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from services.common.config import Settings
    from services.gateway.transport.arrival import Arrival


class Transport(Protocol):
    """A kind of transport; one object serves all connections of a gateway."""

    secure: bool
    """Whether the transport is encrypted."""
    needs: str
    """The setting that turns it on, for people."""

    def __init__(self, settings: Settings) -> None:
        """Raises CannotStart where the settings cannot be carried out."""

    @property
    def on(self) -> bool:
        """Whether the settings give what it needs; else no peer's first bytes are compared with it."""

    @property
    def usable(self) -> bool:
        """Whether it can be spoken now, where it is on; a port that names it is not opened as long as it cannot."""

    @property
    def amiss(self) -> str:
        """What is amiss with it now, for people: why it is not usable, or not as the settings say; "" if nothing is."""

    def begins(self, data: bytes) -> bool | None:
        """Whether first bytes (one at least) are of this kind; None while there are too few to tell."""

    def take(self, arrival: Arrival) -> None:
        """Puts itself in place of `arrival.transport`, from which `arrival.data` was read: now, or in a task.

        It ends with `arrival.look_again`, `arrival.leave_to`, or `arrival.refuse`.
        """
