"""A question to access control: may this user do this to that object?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from services.common.access.action import Action, Kind, Property

DEFAULT_EXCHANGE = "amq.default"
"""The name of the exchange without a name in RabbitMQ's permissions."""
_WITHOUT_NAME = frozenset({Kind.BROKER, Kind.MANAGEMENT})


class Other(NamedTuple):
    """A second object of an operation: a binding's destination, or a dead-letter or alternate exchange."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Principal:
    """The user of a question. `operator`: it runs the stack, and has its secret; no rule is about operators."""

    name: str
    groups: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    host: str = ""  # the address of its connection; "": none
    host_name: str = ""  # the name of that address; "": not known
    operator: bool = False


class Asked(NamedTuple):
    """An action, and its object; equal questions have equal answers until rules change.

    `properties` are those that rules may name besides the name and the virtual host. `further` objects are made, or
    written to, with it: that needs permissions, and no rule is about it.
    """

    action: Action
    kind: Kind
    name: str = ""
    virtual_host: str = ""  # "": the object is in no virtual host
    other: Other | None = None
    properties: tuple[tuple[Property, str | bool], ...] = ()
    further: tuple[Other, ...] = ()

    def value_of(self, wanted: Property) -> str | bool | None:
        """The value of a property; None where the object has none."""
        if wanted is Property.NAME:
            return None if self.kind in _WITHOUT_NAME else self.name
        if wanted is Property.VIRTUALHOST_NAME:
            return self.virtual_host or None
        for name, value in self.properties:  # no generator: called for each new routing key
            if name is wanted:
                return value
        return None

    def without_key(self) -> Asked:
        """The same of any routing key: what no rule tells by its key has one answer for all."""
        left = tuple([each for each in self.properties if each[0] is not Property.ROUTING_KEY])
        if len(left) == len(self.properties):
            return self
        return Asked(self.action, self.kind, self.name, self.virtual_host, self.other, left, self.further)

    @property
    def routing_key(self) -> str:
        """Empty where there is none."""
        return str(self.value_of(Property.ROUTING_KEY) or "")
