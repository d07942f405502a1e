"""What an engine tells and proposes to its peer, and what it puts up with.

Each field is the setting of that name, if there is one. What only one protocol knows is in a class of its own, beside
its engine: how large frames may be, how many sessions there are, how long a peer may be silent.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

_L = TypeVar("_L", bound="Limits")


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_message_size` in bytes. `product` and `product_version` are what the broker calls itself; "" as a version is
    that of the installed distribution.
    """

    max_message_size: int = 16 << 20
    product: str = "Hopline"
    product_version: str = ""


def limits_of(kind: type[_L], settings: object, max_message_size: int) -> _L:
    """As the settings say, but for the size of a message."""
    said = {field.name: getattr(settings, field.name) for field in fields(kind) if hasattr(settings, field.name)}
    return kind(**said | {"max_message_size": max_message_size})
