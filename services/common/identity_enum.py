"""Enumerations that are looked up for every read, argument or question."""

from __future__ import annotations

from enum import Enum


class IdentityEnum(Enum):
    """Hashed as they are compared: Enum's own hash is written in Python, and takes longer than what asks for it.

    A set of them comes in another order in each process.
    """

    __hash__ = object.__hash__
