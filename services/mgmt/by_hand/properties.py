"""Properties of a message as pika has them, with headers that are written and read as everywhere here.

pika knows no floats: it refuses to write them, cuts off what is behind the point, and breaks at one that is no number.
"""

from __future__ import annotations

from typing import Any, Final

from pika import spec

from services.common.errors import SyntaxFault
from services.common.message.amqp_0_9 import Amqp09Format

_FORMAT: Final = Amqp09Format()


class Properties(spec.BasicProperties):  # type: ignore[misc]  # pika has no types
    """Raises SyntaxFault for headers that no table can hold."""

    headers: Any
    unreadable_headers: str | None = None
    """Why those that came are not told: a former release took any, and pika would end the connection."""

    def encode(self) -> list[bytes]:
        """As pika asks for."""
        headers, self.headers = self.headers, None
        try:
            rest = b"".join(super().encode())
        finally:
            self.headers = headers
        return [_FORMAT.with_headers(rest, headers) if headers else rest]

    def decode(self, encoded: bytes, offset: int = 0) -> Properties:
        """As pika asks for."""
        said = bytes(encoded[offset:])
        super().decode(_FORMAT.with_headers(said, {}))
        try:
            self.headers = dict(_FORMAT.headers(said)) or None
        except SyntaxFault as fault:
            self.unreadable_headers = fault.text
        return self


spec.props[Properties.INDEX] = Properties  # where pika looks for what a header frame becomes
