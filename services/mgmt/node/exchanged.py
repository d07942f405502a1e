"""What a client asks of the management node, and what it is answered. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from services.common import errors as e
from services.common.errors import BrokerError, SyntaxFault, of_kind
from services.mgmt.model.answer import ToPublish
from services.mgmt.model.faults import AlreadyExists, IllegalConfiguration, IllegalTransition, NotOffered, brief

LARGEST: Final = 4 << 20
"""Bytes of a body that is answered."""


class TooMuch(BrokerError):
    """More than one message should hold."""


STATUSES: Final[Mapping[type[BrokerError], int]] = {
    e.AccessRefused: 403,
    e.NotFound: 404,
    NotOffered: 501,
    e.NotImplementedHere: 501,
    AlreadyExists: 409,
    IllegalTransition: 409,
    e.PreconditionFailed: 409,
    e.ResourceLocked: 409,
    IllegalConfiguration: 400,
    e.SyntaxFault: 400,
    e.NotAllowed: 400,
    e.CommandInvalid: 400,
    TooMuch: 413,
    e.Unavailable: 503,
    e.ResourceError: 503,
}
"""As over REST, but for those that AMQP Management has in other words: 400 for 422, 501 for 405."""


@dataclass(frozen=True, slots=True)
class Asked:
    """`properties` are the application properties of the message, or its headers."""

    virtual_host: str
    properties: Mapping[str, Any]
    body: Any = None

    @classmethod
    def from_json(cls, virtual_host: str, data: bytes) -> Asked:
        """Raises SyntaxFault for what is none."""
        try:
            said = json.loads(data, parse_constant=_no_number)
            json.dumps(said, ensure_ascii=False).encode()  # half a surrogate pair is no text
            return cls(virtual_host, dict(said["properties"]), said.get("body"))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise SyntaxFault(f"no request is in it: {error}") from None

    def text(self, name: str) -> str:
        """A property that has to be text; "" where it is not there. Raises SyntaxFault."""
        value = self.properties.get(name, "")
        if not isinstance(value, str):
            raise SyntaxFault(f"the property '{name}' is text, not {value!r}")
        return value

    @property
    def map(self) -> dict[str, Any]:
        """The body. Raises SyntaxFault."""
        if not isinstance(self.body, dict):
            raise SyntaxFault("Message body must be a map")
        return dict(self.body)


def check_length(length: int) -> None:
    """Of the body of an answer. Raises TooMuch."""
    if length > LARGEST:
        raise TooMuch(f"an answer of more than {LARGEST} bytes: offset, count and attributeNames ask for less")


def _no_number(text: str) -> None:
    """Python reads more than JSON has."""
    raise ValueError(text)


@dataclass(frozen=True, slots=True)
class Reply:
    """`status` as HTTP's; `publish` is published before it is given."""

    status: int
    description: str
    body: bytes = b""  # JSON
    publish: ToPublish | None = None

    @classmethod
    def of(cls, body: object, status: HTTPStatus = HTTPStatus.OK, publish: ToPublish | None = None) -> Reply:
        """One that says that it is done; `body` None is none. Raises TooMuch."""
        told = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        check_length(len(told))
        return cls(status, status.phrase, told, publish)

    @classmethod
    def refusal(cls, error: BrokerError) -> Reply:
        """One that says why not."""
        return cls(of_kind(STATUSES, error, 500), brief(error.text))
