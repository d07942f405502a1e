"""The conditions of a rule on an object and on the client: `name="orders.*" durable=true`."""

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
"""Properties that Broker-J no longer has; like Broker-J, rules with them are read without them."""
UNKNOWN = frozenset({Property.OWNER, Property.CREATED_BY, Property.COMPONENT, Property.PACKAGE, Property.CLASS})
"""Properties that no object has here: a rule that names them would never do what it says."""


def _canonical(name: str) -> str:
    return name.replace("_", "").lower()


_NAMES: Mapping[str, Property] = {
    **{_canonical(each.value): each for each in Property},
    "attributenames": Property.ATTRIBUTES,  # the name in Broker-J's documentation
}


def property_named(name: str) -> Property:
    """Case and underscores do not matter. Raises SyntaxFault."""
    if (found := _NAMES.get(_canonical(name))) is None:
        raise SyntaxFault(f"Not a valid property: {name}")
    return found


def predicate(wanted: Property, values: Values) -> Predicate:
    """A test for any of the values. Raises SyntaxFault for a value that the property cannot have."""
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
    """Whether any value fits."""
    return not {"", _ANY}.isdisjoint(values)


def _text(wanted: Property, values: Iterable[str]) -> Predicate:
    """A value that ends with a star fits everything with that beginning."""
    whole = frozenset(value for value in values if not value.endswith(_ANY))
    beginnings = tuple(value.removesuffix(_ANY) for value in values if value.endswith(_ANY))

    def fits(_: Principal, asked: Asked) -> bool:
        value = asked.value_of(wanted)
        return isinstance(value, str) and (value in whole or value.startswith(beginnings))

    return fits


def _boolean(value: str) -> bool:
    """As in Broker-J: `tr*` is true, a beginning of neither word is a fault; a whole word other than true is false."""
    if not value.endswith(_ANY):
        return value.lower() == "true"
    beginning = value.removesuffix(_ANY).lower()
    for word, meant in (("true", True), ("false", False)):
        if word.startswith(beginning):
            return meant
    raise SyntaxFault(f"Unknown boolean value: {value}")


def _attributes(values: Values) -> Predicate:
    """Limits an update to these attributes."""

    def fits(_: Principal, asked: Asked) -> bool:
        changed = str(asked.value_of(Property.ATTRIBUTES) or "")
        return asked.action is not Action.UPDATE or values.issuperset(filter(None, changed.split(",")))

    return fits


_OF_LISTS: Mapping[Property, Callable[[Values], Predicate]] = {
    Property.FROM_NETWORK: from_network,
    Property.FROM_HOSTNAME: from_hostname,
    Property.ATTRIBUTES: _attributes,
}
