"""A method is a declaration: its ids and its fields with their wire types. The codec walks the declaration."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, dataclass_transform, get_type_hints

from services.gateway.protocols.amqp_0_9 import wire

_CODE = struct.Struct(">I")


class Method:
    """The base of every method's class; see methods/."""

    __slots__ = ()

    code: ClassVar[int]  # class-id << 16 | method-id
    name: ClassVar[str]  # as the specification writes it: "basic.publish"
    wires: ClassVar[tuple[wire.Wire, ...]]
    values: ClassVar[Callable[[Any], tuple[Any, ...]]]  # of its fields, in order


M = TypeVar("M", bound=Method)


@dataclass_transform(frozen_default=True)
def method(class_id: int, method_id: int) -> Callable[[type[M]], type[M]]:
    """Makes a method of a class whose annotations are wire types, in the order of the wire."""

    def declare(declared: type[M]) -> type[M]:
        made = dataclass(frozen=True, slots=True)(declared)
        made.code = class_id << 16 | method_id
        made.name = _specified_name(made)
        hints = get_type_hints(made, include_extras=True)
        made.wires = tuple(hints[field.name].__metadata__[0] for field in fields(made))  # type: ignore[arg-type]
        made.values = _values_of([field.name for field in fields(made)])  # type: ignore[arg-type]
        return made

    return declare


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda sent: tuple(getattr(sent, name) for name in names)


def _specified_name(declared: type) -> str:
    words = re.findall(r"[A-Z][a-z]+", declared.__name__)
    return f"{declared.__module__.rpartition('.')[2]}.{'-'.join(words).lower()}"


def decode(kind: type[M], payload: bytes) -> M:
    """The method in a method frame's payload; raises SyntaxFault when its arguments are not those of `kind`."""
    return kind(*wire.read(payload, 4, kind.wires))


def encode(sent: Method) -> bytes:
    """The payload of a method frame; raises SyntaxFault for a value that does not fit its wire type."""
    if not sent.wires:
        return _CODE.pack(sent.code)
    return _CODE.pack(sent.code) + wire.write(type(sent).values(sent), sent.wires)
