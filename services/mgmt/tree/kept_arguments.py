"""Arguments of queues, exchanges and bindings, as the router keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from services.common.message import arguments
from services.mgmt.model.faults import IllegalConfiguration


def dumped(table: Mapping[str, Any]) -> bytes:
    """Of what JSON said. Raises IllegalConfiguration for what is too deep to be read again, and SyntaxFault."""
    try:
        return arguments.dump(arguments.load(json.dumps(dict(table)).encode()))
    except RecursionError:
        raise IllegalConfiguration("arguments that have too many in each other") from None


def named(exchange: Any) -> str | None:  # noqa: ANN401 - whatever JSON has
    """The exchange that an argument names, to ask for; what is no name is refused where it is declared."""
    return exchange if isinstance(exchange, str) else None
