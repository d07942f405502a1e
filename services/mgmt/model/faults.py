"""What is wrong with what was asked of the model, beside the errors that any service has."""

from __future__ import annotations

from typing import Final

from services.common.errors import BrokerError

_LONGEST: Final = 2000
_BEGINNING, _END = 1000, 500


class IllegalConfiguration(BrokerError):
    """A value that an attribute cannot have, an attribute that there is none of, one that cannot be changed."""


class NotOffered(BrokerError):
    """What cannot be done to objects of that category at all; `allow` is the method that can, if any."""

    def __init__(self, text: str, allow: str = "") -> None:
        super().__init__(text)
        self.allow = allow


class IllegalTransition(BrokerError):
    """To a state in which an object of that category cannot be."""


class AlreadyExists(BrokerError):
    """Another object has the name."""


def brief(text: str) -> str:
    """What is told of a fault: it may repeat a name or a value of a mebibyte, whose middle nobody reads."""
    return text if len(text) <= _LONGEST else f"{text[:_BEGINNING]} … {text[-_END:]}"
