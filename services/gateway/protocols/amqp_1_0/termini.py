"""The ends of links (part 3, section 3.5)."""

from __future__ import annotations

from services.common.message.amqp_1_0.composite import (
    Anything,
    Boolean,
    Composite,
    Fields,
    Symbol,
    Symbols,
    UInt,
    composite,
)


@composite(0x28, "source")
class Source(Composite):
    """`timeout` in seconds."""

    address: Anything | None = None
    durable: UInt = 0
    expiry_policy: Symbol = "session-end"
    timeout: UInt = 0
    dynamic: Boolean = False
    dynamic_node_properties: Fields | None = None
    distribution_mode: Symbol | None = None
    filter: Fields | None = None
    default_outcome: Anything | None = None
    outcomes: Symbols | None = None
    capabilities: Symbols | None = None


@composite(0x29, "target")
class Target(Composite):
    """`timeout` in seconds."""

    address: Anything | None = None
    durable: UInt = 0
    expiry_policy: Symbol = "session-end"
    timeout: UInt = 0
    dynamic: Boolean = False
    dynamic_node_properties: Fields | None = None
    capabilities: Symbols | None = None
