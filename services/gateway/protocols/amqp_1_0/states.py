"""States of deliveries (part 3, section 3.4), and what each says to a broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from services.common.message.amqp_1_0.added import written
from services.common.message.amqp_1_0.composite import Anything, Boolean, Composite, Fields, UInt, ULong, composite
from services.gateway import outcomes
from services.gateway.protocols.amqp_1_0.conditions import heard, told


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


_ACCEPTED: Final = Accepted()
_RELEASED: Final = Released()

_STATES: Final[Mapping[type, Callable[[Any], Composite]]] = {
    outcomes.Accepted: lambda _: _ACCEPTED,
    outcomes.Rejected: lambda outcome: Rejected(told(outcome.error) if outcome.error else None),
    outcomes.Released: lambda _: _RELEASED,
}

_OUTCOMES: Final[Mapping[type, Callable[[Any], outcomes.DeliveryOutcome]]] = {
    Accepted: lambda _: outcomes.ACCEPTED,
    Rejected: lambda state: outcomes.Rejected(heard(state.error)),
    Released: lambda _: outcomes.RELEASED,
    Modified: lambda state: outcomes.Modified(
        bool(state.delivery_failed), bool(state.undeliverable_here), written(state.message_annotations or {})
    ),
}


def state_of(outcome: outcomes.PublishOutcome) -> Composite:
    """What a sender is told of a message (2.6.12)."""
    return _STATES[type(outcome)](outcome)


def outcome_of(state: object) -> outcomes.DeliveryOutcome | None:
    """What a receiver's state says; None for one that ends nothing. Raises SyntaxFault, ResourceError."""
    its = _OUTCOMES.get(type(state))
    return its(state) if its else None
