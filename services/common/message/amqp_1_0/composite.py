"""Composite types (section 1.4) as declarations: a class whose annotations say each field's type, as the tables of the
specification do. A field is mandatory that has no default and must not be None; the codec walks the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from services.common.errors import SyntaxFault
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.encode import array_of, encode, encode_list


class Kind(NamedTuple):
    """A field's type: what it is called, what a peer may send for it, and what is made of a value to be sent."""

    name: str
    accepts: tuple[type[Any], ...]
    make: Callable[[Any], Any]


Boolean = Annotated[bool, Kind("boolean", (bool,), bool)]
UByte = Annotated[int, Kind("ubyte", (v.UByte,), v.UByte)]
UShort = Annotated[int, Kind("ushort", (v.UShort,), v.UShort)]
UInt = Annotated[int, Kind("uint", (v.UInt,), v.UInt)]
ULong = Annotated[int, Kind("ulong", (v.ULong,), v.ULong)]
Timestamp = Annotated[int, Kind("timestamp", (v.Timestamp,), v.Timestamp)]
Binary = Annotated[bytes, Kind("binary", (bytes,), bytes)]
String = Annotated[str, Kind("string", (str,), str)]
Symbol = Annotated[str, Kind("symbol", (v.Symbol,), v.Symbol)]
Symbols = Annotated[
    Sequence[str], Kind("symbol, multiple", (v.Symbol, v.Array), lambda names: array_of(v.Symbol, names))
]
Fields = Annotated[Mapping[Any, Any], Kind("fields", (dict,), dict)]
Anything = Annotated[Any, Kind("*", (object,), lambda value: value)]


class Composite:
    """The base of every composite type's class."""

    __slots__ = ()

    descriptor: ClassVar[int]
    symbol: ClassVar[str]  # "amqp:open:list", which may stand for it
    plan: ClassVar[Sequence[_Field]]


class _Field(NamedTuple):
    name: str
    kind: Kind
    default: Any  # MISSING where it is mandatory


C = TypeVar("C", bound=Composite)
_REGISTERED: dict[Any, type[Composite]] = {}


@dataclass_transform(frozen_default=True)
def composite(descriptor: int, name: str) -> Callable[[type[C]], type[C]]:
    """Makes a composite type of a class; `descriptor` is its number, `amqp:NAME:list` the other form of that."""

    def declare(declared: type[C]) -> type[C]:
        made = dataclass(frozen=True, slots=True)(declared)
        made.descriptor, made.symbol = descriptor, f"amqp:{name}:list"
        hints = get_type_hints(made, include_extras=True)
        made.plan = [_planned(each.name, hints[each.name], each.default) for each in fields(made)]  # type: ignore[arg-type]
        _REGISTERED[descriptor] = _REGISTERED[made.symbol] = made
        return made

    return declare


def _planned(name: str, hint: Any, default: Any) -> _Field:  # noqa: ANN401 - an annotation, and a value of it
    """What may be None and has no default stands before what is mandatory."""
    if get_origin(hint) in (Union, UnionType):
        hint = next(each for each in get_args(hint) if each is not type(None))
        default = None if default is MISSING else default
    return _Field(name, hint.__metadata__[0], default)


def of(described: v.Described) -> Composite | v.Described:
    """The composite that a described value is, if it is one that was declared; raises SyntaxFault for a wrong one."""
    descriptor = described.descriptor
    kind = _REGISTERED.get(descriptor) if isinstance(descriptor, v.ULong | v.Symbol) else None
    return read(kind, described.value) if kind else described


def read(kind: type[C], values: Any) -> C:  # noqa: ANN401 - whatever the peer says
    """Of the list behind a descriptor; raises SyntaxFault where that is not what `kind` says."""
    if not isinstance(values, list):
        raise SyntaxFault(f"{kind.symbol} is no list")
    if len(values) > len(kind.plan):
        raise SyntaxFault(f"{kind.symbol} has {len(values)} fields")
    given = values + [None] * (len(kind.plan) - len(values))
    return kind(*(_field(kind, field, value) for field, value in zip(kind.plan, given, strict=True)))


def _field(kind: type[Composite], field: _Field, value: Any) -> Any:  # noqa: ANN401 - of any type
    if value is None:
        if field.default is MISSING:
            raise SyntaxFault(f"{kind.symbol} lacks {_spelt(field)}")
        return field.default
    accepts = field.kind.accepts
    if not isinstance(value, accepts) or (str in accepts and isinstance(value, v.Symbol | v.Char)):
        raise SyntaxFault(f"{kind.symbol}: {_spelt(field)} is no {field.kind.name}")
    if v.Array in accepts:
        return _multiple(kind, field, value)
    return of(value) if isinstance(value, v.Described) else value


def _multiple(kind: type[Composite], field: _Field, value: v.Array | v.Symbol) -> tuple[Any, ...]:
    """One value alone may stand for an array of it (section 1.4)."""
    found = value.values if isinstance(value, v.Array) else (value,)
    if not all(isinstance(each, v.Symbol) for each in found):
        raise SyntaxFault(f"{kind.symbol}: {_spelt(field)} is no {field.kind.name}")
    return found


def _spelt(field: _Field) -> str:
    return field.name.rstrip("_").replace("_", "-")


def write(sent: Composite) -> bytes:
    """With its descriptor. What is as its default is left out, which says the same (section 1.4)."""
    parts = [_part(getattr(sent, field.name), field) for field in sent.plan]
    while parts and parts[-1] == _NULL:
        parts.pop()
    return b"\x00" + encode(v.ULong(sent.descriptor)) + encode_list(parts)


def _part(value: Any, field: _Field) -> bytes:  # noqa: ANN401 - of any type
    if value is None or value == field.default:
        return _NULL
    return write(value) if isinstance(value, Composite) else encode(field.kind.make(value))


_NULL = encode(None)
