"""Transfers as most clients write them, read without a value for each of their fields (part 2, section 2.7.5).

Messages on a link differ in delivery-id and delivery-tag only: what the performative says behind these is read once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.composite import read
from services.common.message.amqp_1_0.decode import decode
from services.gateway.protocols.amqp_1_0.performatives import Transfer

_OPENING: Final = b"\x00\x53" + bytes((Transfer.descriptor,)) + b"\xc0"  # a list whose size and count take a byte each
_SIZE_AT: Final = len(_OPENING)
_FIELDS_AT: Final = _SIZE_AT + 2
_FIRST: Final = ("handle", "delivery_id", "delivery_tag")
_BINARY: Final = 0xA0  # of up to 255 bytes
_UINTS: Final = {0x43: 0, 0x52: 1, 0x70: 4}  # how many bytes follow each constructor of an uint


def transfer_in(body: bytes) -> tuple[Transfer, int] | None:
    """The transfer that a frame's body begins with, and where it ends; None of anything that is written otherwise.

    Raises SyntaxFault for a wrong one.
    """
    if not body.startswith(_OPENING):
        return None
    try:
        end = _SIZE_AT + 1 + body[_SIZE_AT]
        handle, at = _uint(body, _FIELDS_AT)
        delivery_id, at = _uint(body, at)
        tag, others = at + 2, at + 2 + body[at + 1]
        usual = body[at] == _BINARY and others <= end <= len(body)
    except (IndexError, KeyError):
        return None
    if not usual:
        return None
    rest = _others(body[_SIZE_AT + 1], body[others:end])
    return Transfer(handle, delivery_id, body[tag:others], *rest), end


def _uint(body: bytes, at: int) -> tuple[int, int]:
    """Its value, and where it ends."""
    begin = at + 1
    end = begin + _UINTS[body[at]]
    return int.from_bytes(body[begin:end], "big"), end


@lru_cache(256)
def _others(count: int, raw: bytes) -> tuple[Any, ...]:
    """What the fields behind the first three say, of a list of `count`."""
    fields = decode(b"\xc0" + bytes((len(raw) + 1, count - len(_FIRST) & 0xFF)) + raw)
    whole = read(Transfer, [v.UInt(0), None, None, *fields])
    return tuple(getattr(whole, field.name) for field in Transfer.plan[len(_FIRST) :])
