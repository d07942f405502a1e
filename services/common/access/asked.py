"""A question: may somebody do this to that?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from services.common.access.action import Action, Kind, Property

DEFAULT_EXCHANGE = "amq.default"
"""What RabbitMQ's permissions call the exchange without a name."""
_WITHOUT_NAME = frozenset({Kind.BROKER, Kind.MANAGEMENT})


class Other(NamedTuple):
    """A second object of an operation: where a binding leads, or where what is refused goes."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. `operator`: whoever runs the stack, and knows its secret; no rule is about them."""

    name: str
    groups: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    host: str = ""  # the address that they come from; "": none
    host_name: str = ""  # what that is called; "": it is not known
    operator: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """An action, and the object that it is done to; equal questions have equal answers until rules change.

    `properties` are what rules ask for besides the name and the virtual host.
    """

    action: Action
    kind: Kind
    name: str = ""
    virtual_host: str = ""  # "": the object is in none
    other: Other | None = None
    properties: tuple[tuple[Property, str | bool], ...] = field(default=())

    def value_of(self, wanted: Property) -> str | bool | None:
        """None where the object has no such property."""
        if wanted is Property.NAME:
            return None if self.kind in _WITHOUT_NAME else self.name
        if wanted is Property.VIRTUALHOST_NAME:
            return self.virtual_host or None
        for name, value in self.properties:  # no generator: it is asked for each new routing key
            if name is wanted:
                return value
        return None

    @property
    def routing_key(self) -> str:
        """Empty where there is none."""
        return str(self.value_of(Property.ROUTING_KEY) or "")
