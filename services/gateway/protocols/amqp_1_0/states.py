"""States of deliveries (part 3, section 3.4), and what each says to a broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from services.common.message.amqp_1_0.composite import Anything, Boolean, Composite, Fields, UInt, ULong, composite
from services.gateway import outcomes
from services.gateway.protocols.amqp_1_0.conditions import told


@composite(0x23, "received")
class Received(Composite):
    """Not the end of anything."""

    section_number: UInt
    section_offset: ULong


@composite(0x24, "accepted")
class Accepted(Composite):
    pass


@composite(0x25, "rejected")
class Rejected(Composite):
    error: Anything | None = None


@composite(0x26, "released")
class Released(Composite):
    pass


@composite(0x27, "modified")
class Modified(Composite):
    delivery_failed: Boolean | None = None
    undeliverable_here: Boolean | None = None
    message_annotations: Fields | None = None


OUTCOMES = tuple(kind.symbol for kind in (Accepted, Rejected, Released, Modified))
USUAL_OUTCOME = Modified(delivery_failed=True)
"""What becomes of a delivery that is settled without a word."""


def outcome_of(state: object) -> outcomes.Outcome | None:
    """What a receiver's state says; None for one that ends nothing.

    "Undeliverable here" is dead-lettered, as RabbitMQ does: there is no other place to take it to. An attempt is only
    what the receiver calls failed (3.4.4, 3.4.5).
    """
    match state:
        case Accepted():
            return outcomes.Outcome.ACCEPT
        case Rejected() | Modified(undeliverable_here=True):
            return outcomes.Outcome.REJECT
        case Modified(delivery_failed=True):
            return outcomes.Outcome.RELEASE
        case Released() | Modified():
            return outcomes.Outcome.RETURN
    return None


_ACCEPTED: Final = Accepted()
_RELEASED: Final = Released()
_STATES: Final[Mapping[type, Callable[[Any], Composite]]] = {
    outcomes.Accepted: lambda _: _ACCEPTED,
    outcomes.Rejected: lambda outcome: Rejected(told(outcome.error)),
    outcomes.Released: lambda _: _RELEASED,
}


def state_of(outcome: outcomes.PublishOutcome) -> Composite:
    """What a sender is told of a message (2.6.12)."""
    return _STATES[type(outcome)](outcome)
