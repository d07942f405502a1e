"""What frames say (part 2, section 2.7): field by field as in the specification's tables."""

from __future__ import annotations

from services.common.message.amqp_1_0.composite import (
    Anything,
    Binary,
    Boolean,
    Composite,
    Fields,
    String,
    Symbol,
    Symbols,
    UByte,
    UInt,
    ULong,
    UShort,
    composite,
)

SENDER, RECEIVER = False, True  # section 2.8.1, role
UNSETTLED, SETTLED, MIXED = range(3)  # section 2.8.2, sender-settle-mode
FIRST, SECOND = range(2)  # section 2.8.3, receiver-settle-mode


@composite(0x1D, "error")
class Error(Composite):
    """Section 2.8.14."""

    condition: Symbol
    description: String | None = None
    info: Fields | None = None


@composite(0x10, "open")
class Open(Composite):
    """`idle_time_out` in milliseconds."""

    container_id: String
    hostname: String | None = None
    max_frame_size: UInt = 0xFFFFFFFF
    channel_max: UShort = 0xFFFF
    idle_time_out: UInt | None = None
    outgoing_locales: Symbols | None = None
    incoming_locales: Symbols | None = None
    offered_capabilities: Symbols | None = None
    desired_capabilities: Symbols | None = None
    properties: Fields | None = None


@composite(0x11, "begin")
class Begin(Composite):
    remote_channel: UShort | None
    next_outgoing_id: UInt
    incoming_window: UInt
    outgoing_window: UInt
    handle_max: UInt = 0xFFFFFFFF
    offered_capabilities: Symbols | None = None
    desired_capabilities: Symbols | None = None
    properties: Fields | None = None


@composite(0x12, "attach")
class Attach(Composite):
    name: String
    handle: UInt
    role: Boolean
    snd_settle_mode: UByte = MIXED
    rcv_settle_mode: UByte = FIRST
    source: Anything | None = None
    target: Anything | None = None
    unsettled: Fields | None = None
    incomplete_unsettled: Boolean = False
    initial_delivery_count: UInt | None = None
    max_message_size: ULong | None = None
    offered_capabilities: Symbols | None = None
    desired_capabilities: Symbols | None = None
    properties: Fields | None = None


@composite(0x13, "flow")
class Flow(Composite):
    next_incoming_id: UInt | None
    incoming_window: UInt
    next_outgoing_id: UInt
    outgoing_window: UInt
    handle: UInt | None = None
    delivery_count: UInt | None = None
    link_credit: UInt | None = None
    available: UInt | None = None
    drain: Boolean = False
    echo: Boolean = False
    properties: Fields | None = None


@composite(0x14, "transfer")
class Transfer(Composite):
    handle: UInt
    delivery_id: UInt | None = None
    delivery_tag: Binary | None = None
    message_format: UInt | None = None
    settled: Boolean | None = None
    more: Boolean = False
    rcv_settle_mode: UByte | None = None
    state: Anything | None = None
    resume: Boolean = False
    aborted: Boolean = False
    batchable: Boolean = False


@composite(0x15, "disposition")
class Disposition(Composite):
    role: Boolean
    first: UInt
    last: UInt | None = None
    settled: Boolean = False
    state: Anything | None = None
    batchable: Boolean = False


@composite(0x16, "detach")
class Detach(Composite):
    handle: UInt
    closed: Boolean = False
    error: Anything | None = None


@composite(0x17, "end")
class End(Composite):
    error: Anything | None = None


@composite(0x18, "close")
class Close(Composite):
    error: Anything | None = None
