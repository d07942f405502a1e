"""What is wrong with what was asked of the model, beside the errors that any service has."""

from __future__ import annotations

from services.common.errors import BrokerError


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
