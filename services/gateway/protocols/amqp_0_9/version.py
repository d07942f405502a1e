"""A version of the 0-9 family as data: its protocol header, its methods, and where it differs from 0-9-1.

The engine knows the methods of 0-9-1. An older version says which of them lie otherwise on its wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TypeVar

from services.common.errors import BrokerError
from services.gateway.protocols.amqp_0_9 import method
from services.gateway.protocols.amqp_0_9.method import Method
from services.gateway.protocols.amqp_0_9.reply_codes import reply_code

M = TypeVar("M", bound=Method)


@dataclass(frozen=True, slots=True)
class Version:
    """`methods` by their code (class-id << 16 | method-id). `layouts`: how some of them lie on the wire, if otherwise.

    `codes`: reply codes that it does not have, and what it says instead.
    """

    name: str
    header: bytes
    major: int
    minor: int
    methods: Mapping[int, type[Method]]
    layouts: Mapping[type[Method], type[Method]] = field(default_factory=dict)
    codes: Mapping[int, int] = field(default_factory=dict)

    def decode(self, kind: type[M], payload: bytes) -> M:
        """The method in a method frame's payload; raises SyntaxFault when its arguments are not those of `kind`."""
        layout = self.layouts.get(kind)
        return method.decode(kind, payload) if layout is None else _as(kind, method.decode(layout, payload))

    def encode(self, sent: Method) -> bytes:
        """The payload of a method frame; raises SyntaxFault for a value that does not fit its wire type."""
        layout = self.layouts.get(type(sent))
        return method.encode(sent if layout is None else _as(layout, sent))

    def code_of(self, kind: type[Method]) -> int:
        """Of a method of 0-9-1: its code here."""
        return self.layouts.get(kind, kind).code

    def reply_code(self, error: BrokerError) -> int:
        """What this version has for an error."""
        code = reply_code(error)
        return self.codes.get(code, code)


def _as(kind: type[M], value: Method) -> M:
    """The fields that both have."""
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: getattr(value, name) for name in names if hasattr(value, name)})
