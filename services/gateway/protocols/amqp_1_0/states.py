"""States of deliveries (part 3, section 3.4), and what each says to a broker."""

from __future__ import annotations

from services.common.message.amqp_1_0.composite import Anything, Boolean, Composite, Fields, UInt, ULong, composite
from services.gateway.vocabulary import Outcome


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


def outcome_of(state: object) -> Outcome | None:
    """What a receiver's state says; None for one that ends nothing.

    "Undeliverable here" is dead-lettered, as RabbitMQ does: there is no other place to take it to. An attempt is only
    what the receiver calls failed (3.4.4, 3.4.5).
    """
    match state:
        case Accepted():
            return Outcome.ACCEPT
        case Rejected() | Modified(undeliverable_here=True):
            return Outcome.REJECT
        case Modified(delivery_failed=True):
            return Outcome.RELEASE
        case Released() | Modified():
            return Outcome.RETURN
    return None
