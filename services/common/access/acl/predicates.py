"""What a rule asks of an object and of who is at it: `name="orders.*" durable=true`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from services.common.access.acl.firewall import from_hostname, from_network
from services.common.access.action import Action, Property
from services.common.access.asked import Asked, Principal
from services.common.errors import SyntaxFault

Predicate: TypeAlias = Callable[[Principal, Asked], bool]
Values: TypeAlias = frozenset[str]

_ANY = "*"
BOOLEAN = frozenset({Property.DURABLE, Property.EXCLUSIVE, Property.TEMPORARY, Property.AUTO_DELETE})
_SPLIT = frozenset({Property.FROM_HOSTNAME, Property.FROM_NETWORK, Property.ATTRIBUTES})
IGNORED = frozenset({Property.CONNECTION_LIMIT, Property.CONNECTION_FREQUENCY_LIMIT})
"""Broker-J has removed them, and takes rules that have them as if they had not."""
UNKNOWN = frozenset({Property.OWNER, Property.CREATED_BY, Property.COMPONENT, Property.PACKAGE, Property.CLASS})
"""What nobody knows of an object here: a rule that asks for it would never do what it says."""


def _canonical(name: str) -> str:
    return name.replace("_", "").lower()


_NAMES: Mapping[str, Property] = {
    **{_canonical(each.value): each for each in Property},
    "attributenames": Property.ATTRIBUTES,  # as Broker-J's documentation has it
}


def property_named(name: str) -> Property:
    """Case and underscores do not matter. Raises SyntaxFault."""
    if (found := _NAMES.get(_canonical(name))) is None:
        raise SyntaxFault(f"Not a valid property: {name}")
    return found


def predicate(wanted: Property, values: Values) -> Predicate:
    """One of the values is enough. Raises SyntaxFault for what the property cannot be."""
    if wanted in _SPLIT:
        return _OF_LISTS[wanted](frozenset(part.strip() for value in values for part in value.split(",")))
    trimmed = {value.strip() for value in values}
    if is_any(trimmed):
        return lambda _, asked: asked.value_of(wanted) is not None
    if wanted in BOOLEAN:
        booleans = frozenset(map(_boolean, trimmed))
        return lambda _, asked: asked.value_of(wanted) in booleans
    return _text(wanted, trimmed)


def is_any(values: Iterable[str]) -> bool:
    """Whether whatever is there fits."""
    return not {"", _ANY}.isdisjoint(values)


def _text(wanted: Property, values: Iterable[str]) -> Predicate:
    """A value that ends with a star is the beginning of what fits."""
    whole = frozenset(value for value in values if not value.endswith(_ANY))
    beginnings = tuple(value.removesuffix(_ANY) for value in values if value.endswith(_ANY))

    def fits(_: Principal, asked: Asked) -> bool:
        value = asked.value_of(wanted)
        return isinstance(value, str) and (value in whole or value.startswith(beginnings))

    return fits


def _boolean(value: str) -> bool:
    """As Broker-J reads it: `tr*` is true, and what begins with neither is a fault; whole words are true or not."""
    if not value.endswith(_ANY):
        return value.lower() == "true"
    beginning = value.removesuffix(_ANY).lower()
    for word, meant in (("true", True), ("false", False)):
        if word.startswith(beginning):
            return meant
    raise SyntaxFault(f"Unknown boolean value: {value}")


def _attributes(values: Values) -> Predicate:
    """An update may be of these attributes only."""

    def fits(_: Principal, asked: Asked) -> bool:
        changed = str(asked.value_of(Property.ATTRIBUTES) or "")
        return asked.action is not Action.UPDATE or values.issuperset(filter(None, changed.split(",")))

    return fits


_OF_LISTS: Mapping[Property, Callable[[Values], Predicate]] = {
    Property.FROM_NETWORK: from_network,
    Property.FROM_HOSTNAME: from_hostname,
    Property.ATTRIBUTES: _attributes,
}
