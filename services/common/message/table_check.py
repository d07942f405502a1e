"""Whether a field table (0-9-1 section 4.2.5.5) can be read: nothing is decoded.

Most fields are passed over by a pattern, as many as lie together: they have short names in ASCII, and values of a fixed
size or little text. Of those a pattern takes a thirtieth of the time of a walk.
"""

from __future__ import annotations

import re
import struct
from typing import Final

from services.common.errors import SyntaxFault
from services.common.message.field_table import HOLDING, MAX_DEPTH, SIZED, SIZES

_FIXED: Final = {ord(letter): size for letter, size in SIZES.items()}
_HOLDING: Final = frozenset(map(ord, HOLDING))
_SIZED: Final = frozenset(map(ord, SIZED))
_TABLE: Final = ord("F")
_LENGTH: Final = struct.Struct(">I")
_LONGEST_NAME: Final = 63  # of those that a pattern knows …
_LONGEST_TEXT: Final = 255  # … and of texts
_STEP: Final = 64  # alternatives are tried one after the other: so many for each of as many


def _octet(number: int) -> bytes:
    return re.escape(bytes((number,)))


def _counted(most: int, what: bytes) -> bytes:
    """A pattern: an octet, up to `most`, and so many of what a pattern says."""
    each = [_octet(count) + what + b"{%d}" % count for count in range(most + 1)]
    groups = [b"|".join(each[:_STEP])]
    for least in range(_STEP, most + 1, _STEP):
        first, last = _octet(least), _octet(least + _STEP - 1)
        groups.append(b"(?=[%s-%s])(?:%s)" % (first, last, b"|".join(each[least : least + _STEP])))
    return b"(?:" + b"|".join(groups) + b")"


def _value() -> bytes:
    """A pattern: a type and a value of it."""
    texts = b"[%s]\\0{3}%s" % (b"".join(sorted(SIZED - HOLDING)), _counted(_LONGEST_TEXT, b"."))
    empty = b"[%s]\\0{4}" % b"".join(sorted(HOLDING))
    fixed = [letter + b".{%d}" % size for letter, size in SIZES.items()]
    return b"(?:" + b"|".join([texts, *fixed, empty]) + b")"


_FIELDS: Final = re.compile(b"(?:" + _counted(_LONGEST_NAME, rb"[\0-\x7f]") + _value() + b")*", re.DOTALL).match
_VALUES: Final = re.compile(_value() + b"*", re.DOTALL).match


def check(data: bytes, begin: int, end: int) -> int:
    """Of the fields of a table between two octets: raises SyntaxFault where `field_table.decode` does.

    But not for the number of its values. Gives how many the pattern did not pass over: each takes a microsecond or two.
    """
    found = _FIELDS(data, begin, end)
    passed = found.end() if found else begin
    if passed == end:
        return 0
    try:
        return _walked(data, passed, end, MAX_DEPTH, named=True)
    except (struct.error, IndexError) as error:
        raise SyntaxFault("a field table ends early") from error
    except UnicodeDecodeError as error:
        raise SyntaxFault("a field's name is not UTF-8") from error


def _walked(data: bytes, position: int, end: int, depth: int, *, named: bool) -> int:
    """The same of a table's fields, or an array's values, from `position` on, where the pattern stopped."""
    plain, count = _FIELDS if named else _VALUES, 0
    while position < end:
        count += 1
        if named:
            start = position + 1
            position = start + data[position]
            data[start:position].decode()
        letter = data[position]
        position += 1
        if (size := _FIXED.get(letter)) is not None:
            position += size
        elif letter in _SIZED:
            value = position + _LENGTH.size
            position = value + _LENGTH.unpack_from(data, position)[0]
            if letter in _HOLDING:
                count += _held(data, value, position, depth - 1, named=letter == _TABLE)
        else:
            raise SyntaxFault(f"unknown field type {letter:#04x}")
        if position < end and (found := plain(data, position, end)):
            position = found.end()
    if position != end:
        raise SyntaxFault("a field reaches over the end of what holds it")
    return count


def _held(data: bytes, begin: int, end: int, depth: int, *, named: bool) -> int:
    """The same of all that a table or an array holds that is in another."""
    if begin < end and not depth:
        raise SyntaxFault(f"field tables nested deeper than {MAX_DEPTH}")
    found = (_FIELDS if named else _VALUES)(data, begin, end)
    return _walked(data, found.end() if found else begin, end, depth, named=named)
