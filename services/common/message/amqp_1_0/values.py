"""Values of AMQP 1.0 (section 1.6) in Python.

What Python tells apart stands for itself: None, bool, float (double), bytes (binary), str (string), UUID, list, dict
(map). For what it does not there are the types below, each of which can stand where the Python type does.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class UByte(int):
    """8 bits, unsigned."""

    __slots__ = ()


class UShort(int):
    """16 bits, unsigned."""

    __slots__ = ()


class UInt(int):
    """32 bits, unsigned."""

    __slots__ = ()


class ULong(int):
    """64 bits, unsigned."""

    __slots__ = ()


class Byte(int):
    """8 bits."""

    __slots__ = ()


class Short(int):
    """16 bits."""

    __slots__ = ()


class Int(int):
    """32 bits."""

    __slots__ = ()


class Long(int):
    """64 bits: what an int of Python's own becomes."""

    __slots__ = ()


class Timestamp(int):
    """Milliseconds since 1970, of 64 bits."""

    __slots__ = ()


class Float(float):
    """32 bits."""

    __slots__ = ()


class Char(str):
    """One character of Unicode."""

    __slots__ = ()


class Symbol(str):
    """A name from a constrained domain, in ASCII."""

    __slots__ = ()


class Decimal(bytes):
    """A decimal number of 32, 64 or 128 bits (IEEE 754), which nobody here reckons with: its bytes."""

    __slots__ = ()


class Described(NamedTuple):
    """A value with a descriptor, which says what it is (section 1.2)."""

    descriptor: Any  # ULong, or Symbol
    value: Any


class Array(NamedTuple):
    """Values of one type (section 1.6.24). `constructor` is that of each: its code, behind its descriptors if any."""

    constructor: bytes
    values: tuple[Any, ...]
