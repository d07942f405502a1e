"""What requests say of a virtual host, and definitions, without what cannot be taken: its objects need none of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from services.common.errors import SyntaxFault
from services.mgmt.rabbitmq.described import CLASSIC, TYPES
from services.mgmt.rabbitmq.forms import SAID, NamedVirtualHost, VirtualHostForm

_METADATA: Final = "metadata"
_PLACES: Final = frozenset((name,) for name in (*SAID, _METADATA))


def host_said(item: Mapping[str, Any]) -> tuple[NamedVirtualHost, list[str]]:
    """It, and what is wrong with its description, tags or default type of queues, which it has not then.

    Raises ValidationError where its name or its limits are wrong.
    """
    try:
        return NamedVirtualHost.model_validate(item), []
    except ValidationError as error:
        wrong = {
            each["loc"][:2] if each["loc"][:1] == (_METADATA,) else each["loc"][:1]: each for each in error.errors()
        }
        if any(place[:1] not in _PLACES for place in wrong):
            raise
    for place in wrong:
        item = _without(item, *map(str, place))
    reasons = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in wrong.values()]
    return NamedVirtualHost.model_validate(item), reasons


def said_in(told: VirtualHostForm) -> dict[str, Any]:
    """What a request says of it. Raises SyntaxFault for a type of queues that there is not."""
    if (kind := told.said.get("default_queue_type", CLASSIC)) not in TYPES:
        raise SyntaxFault(f"default_queue_type: queues are classic where nothing is said, not {kind}")
    return told.said


def _without(item: Mapping[str, Any], first: str, *rest: str) -> Mapping[str, Any]:
    others = {key: value for key, value in item.items() if key != first}
    return {**others, first: _without(item[first], *rest)} if rest else others
