"""The sections of a message (part 3, section 3.2), told apart without reading what is in them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from services.common.errors import PreconditionFailed, SyntaxFault
from services.common.message.amqp_1_0.composite import (
    Anything,
    Binary,
    Boolean,
    Composite,
    String,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    composite,
)
from services.common.message.amqp_1_0.decode import decode_at
from services.common.message.amqp_1_0.passing import DESCRIBED, has_many, skip
from services.common.message.bounds import LITTLE, MOST_SECTIONS, MOST_SENT

HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
MESSAGE_ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
SEQUENCE: Final = 0x76
VALUE: Final = 0x77
FOOTER: Final = 0x78

NULL: Final = b"\x00\x53\x77\x40"
"""A body that is null."""

_SYMBOLS: Final = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION_PROPERTIES,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": SEQUENCE,
    "amqp:amqp-value:*": VALUE,
    "amqp:footer:map": FOOTER,
}
_REPEATABLE: Final = frozenset({DATA, SEQUENCE})
_BODY: Final = range(DATA, FOOTER)
_SMALL_ULONG: Final = 0x53  # how nearly everybody writes a descriptor: these three bytes


@composite(HEADER, "header")
class Header(Composite):
    """Section 3.2.1: what whoever has the message on its way may change. `ttl` in milliseconds."""

    durable: Boolean | None = None
    priority: UByte | None = None
    ttl: UInt | None = None
    first_acquirer: Boolean | None = None
    delivery_count: UInt | None = None


@composite(PROPERTIES, "properties")
class Properties(Composite):
    """Section 3.2.4: nobody on the way changes it. Ids are of four types."""

    message_id: Anything | None = None
    user_id: Binary | None = None
    to: Anything | None = None
    subject: String | None = None
    reply_to: Anything | None = None
    correlation_id: Anything | None = None
    content_type: Symbol | None = None
    content_encoding: Symbol | None = None
    absolute_expiry_time: Timestamp | None = None
    creation_time: Timestamp | None = None
    group_id: String | None = None
    group_sequence: UInt | None = None
    reply_to_group_id: String | None = None


class Section(NamedTuple):
    """Where one begins, where the value behind its descriptor does, and where it ends."""

    code: int
    start: int
    value: int
    end: int


def sections(data: bytes) -> list[Section]:
    """Of a message, or of a part of it, in their order.

    Raises SyntaxFault where that is another one than 3.2 says, PreconditionFailed where there are too many: each costs
    as much as kilobytes, and the smallest has four bytes.
    """
    found: list[Section] = []
    position, last = 0, 0
    for _ in range(MOST_SECTIONS):
        if position >= len(data):
            return found
        code, value = _descriptor(data, position)
        if not (code > last or (code == last and code in _REPEATABLE)) or (
            code in _BODY and last in _BODY and code != last
        ):
            raise SyntaxFault(f"section {code:#04x} of a message behind section {last:#04x}")
        end = skip(data, value)
        found.append(Section(code, position, value, end))
        position, last = end, code
    if position < len(data):
        raise PreconditionFailed(f"a message of more than {MOST_SECTIONS} sections")
    return found


def _descriptor(data: bytes, position: int) -> tuple[int, int]:
    """A section's code, and where its value begins."""
    if data[position] != DESCRIBED:
        raise SyntaxFault("a message has a part that is no section")
    if data[position + 1 : position + 2] == b"\x53":
        value = position + 3
        code: Any = data[position + 2] if value <= len(data) else None
    else:
        code, value = decode_at(data, position + 1)
        code = _SYMBOLS.get(code, code) if isinstance(code, str) else code
    if not isinstance(code, int) or not HEADER <= code <= FOOTER:
        raise SyntaxFault(f"no section of a message is {code!r}")
    return code, value


def split(message: bytes) -> tuple[bytes, bytes]:
    """What stands before a message's body, and body and footer: properties and body of a broker's message.

    Delivery annotations are left out: they are for who is told them, not for who comes next (section 3.2.2). A body
    that is not there is null: section 3.2 wants one, but proton, which most clients use, leaves out one that is null.
    Raises SyntaxFault for what is no message, PreconditionFailed for one that nobody could read at once.
    """
    found = sections(message)
    rest = next((each for each in found if each.code >= DATA), None)
    start, null = (rest.start, b"" if rest.code in _BODY else NULL) if rest else (len(message), NULL)
    before = [each for each in found if each.code < DATA and each.code != DELIVERY_ANNOTATIONS]
    if start > LITTLE and has_many(message, [each.value for each in before], MOST_SENT):
        raise PreconditionFailed(f"a message of more than {MOST_SENT} values in front of its body")
    return b"".join([message[each.start : each.end] for each in before]), null + message[start:]
