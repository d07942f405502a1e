"""RabbitMQ's sender-selected distribution: the headers CC and BCC are arrays of further routing keys.

All that a message is routed by CC its receivers see; BCC they do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.common.errors import PreconditionFailed
from services.common.message import field_table
from services.common.message.field_table import Entry

_SHOWN, _HIDDEN = b"CC", b"BCC"
_NAMES = frozenset((_SHOWN, _HIDDEN))
_SHOWN_FIELD, _HIDDEN_FIELD = b"\x02CC", b"\x03BCC"  # as they stand in a table

# What RabbitMQ's errors call the types.
_TYPES = {
    "S": "longstr", "c": "longstr", "C": "longstr", "k": "byte", "x": "binary", "F": "table", "t": "bool", "b": "byte",
    "B": "unsignedbyte", "s": "short", "U": "short", "u": "unsignedshort", "I": "signedint", "i": "unsignedint",
    "l": "long", "L": "long", "f": "float", "d": "double", "D": "decimal", "T": "timestamp", "V": "void",
}  # fmt: skip

_WORDS = 500  # a router looks at each word of each key, in one go, and all its other clients wait meanwhile


def seems(properties: bytes) -> bool:
    """Whether there may be such a header in some properties: right when it says no, and cheap."""
    return properties.find(_SHOWN_FIELD) > 0 or properties.find(_HIDDEN_FIELD) > 0


def read(table: bytes) -> tuple[tuple[str, ...], bytes]:
    """The keys in the headers of a field table, and the table without BCC: the same object when there is none.

    As in RabbitMQ a header counts when it comes first, and what is no text in it is passed over. Raises
    PreconditionFailed for a header that is no array, in RabbitMQ's words, and for keys of more than 500 words in all;
    SyntaxFault for bytes that are no table.
    """
    found = field_table.entries(table, _NAMES)
    keys: dict[str, None] = {}
    for name in (_SHOWN, _HIDDEN):
        first = next((entry for entry in found if entry.name == name), None)
        keys.update(dict.fromkeys(_keys(table, first) if first else ()))
    if sum([1 + key.count(".") for key in keys]) > _WORDS:
        raise PreconditionFailed(f"invalid message: the keys in CC and BCC have more than {_WORDS} words")
    hidden = [entry for entry in found if entry.name == _HIDDEN]
    return tuple(keys), field_table.without(table, hidden) if hidden else table


def keys_in(headers: Mapping[str, Any]) -> list[str]:
    """The keys in headers that are decoded; what is no array of text is passed over."""
    named = [headers.get(name.decode()) for name in (_SHOWN, _HIDDEN)]
    return [key for keys in named if isinstance(keys, list) for key in keys if isinstance(key, str)]


def seen(headers: Mapping[str, Any]) -> dict[str, Any]:
    """The headers that others see, of those that are decoded."""
    return {name: value for name, value in headers.items() if name != _HIDDEN.decode()}


def _keys(table: bytes, entry: Entry) -> list[str]:
    letter = chr(table[entry.value])
    if letter != "A":
        reason = f'{{unacceptable_type_in_header,"{entry.name.decode()}",{_TYPES[letter]}}}'
        raise PreconditionFailed(f"invalid message: {reason}")
    return [key for key in field_table.value(table, entry) if isinstance(key, str)]
