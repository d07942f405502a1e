"""Questions in the words of operators: `publish exchange:orders`, with `routing_key=eu.new`."""

from __future__ import annotations

from collections.abc import Mapping

from services.common.access.acl.predicates import BOOLEAN, property_named
from services.common.access.action import Action, Kind, Property
from services.common.access.asked import Asked, Other
from services.common.errors import SyntaxFault

_KINDS = {"VHOST": Kind.VIRTUALHOST, **{each.value: each for each in Kind}}
_IN_VIRTUAL_HOSTS = frozenset({Kind.EXCHANGE, Kind.QUEUE})


def question(
    action: str, kind: str, name: str = "", virtual_host: str = "/", properties: Mapping[str, str] | None = None
) -> Asked:
    """The question that the operation itself asks; raises SyntaxFault for unknown words.

    `queue_name` is what is bound, `alternate` the dead-letter or alternate exchange.
    """
    asked_kind = _KINDS.get(kind.upper().replace("_", ""))
    if asked_kind is None:
        raise SyntaxFault(f"there is no {kind}; there are {', '.join(sorted(_KINDS))}")
    try:
        asked_action = Action(action.upper().replace("-", "_"))
    except ValueError:
        raise SyntaxFault(
            f"there is no action {action}; there are {', '.join(each.value for each in Action)}"
        ) from None
    known = {property_named(key): value for key, value in (properties or {}).items()}
    return Asked(
        asked_action,
        asked_kind,
        name,
        virtual_host if asked_kind in _IN_VIRTUAL_HOSTS else name if asked_kind is Kind.VIRTUALHOST else "",
        _other(known),
        tuple((key, value.lower() == "true" if key in BOOLEAN else value) for key, value in known.items()),
    )


def _other(properties: Mapping[Property, str]) -> Other | None:
    if alternate := properties.get(Property.ALTERNATE):
        return Other(Kind.EXCHANGE, alternate)
    if queue := properties.get(Property.QUEUE_NAME):
        return Other(Kind.QUEUE, queue)
    return None
