"""Whether a declaration says the same as what exists; if not, in RabbitMQ's words (AMQP 0-9-1: 406)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from services.common.errors import PreconditionFailed

_TYPE_NAMES = {
    bool: "bool",
    int: "long",
    float: "double",
    str: "longstr",
    bytes: "binary",
    dict: "table",
    list: "array",
}


def check_property(what: str, thing: str, received: bool | str, current: bool | str) -> None:
    """Raises PreconditionFailed when a property differs; `thing` is as `names.called` says it."""
    if received != current:
        raise PreconditionFailed(
            f"inequivalent arg '{what}' for {thing}: received '{_plain(received)}' but current is '{_plain(current)}'",
        )


def check_arguments(
    compared: Iterable[str], thing: str, received: Mapping[str, Any], current: Mapping[str, Any]
) -> None:
    """Raises PreconditionFailed for the first of the `compared` arguments that differs."""
    for name in compared:
        if received.get(name) != current.get(name):
            raise PreconditionFailed(
                f"inequivalent arg '{name}' for {thing}: "
                f"received {_typed(received.get(name))} but current is {_typed(current.get(name))}",
            )


def _plain(value: bool | str) -> str:
    return str(value).lower() if isinstance(value, bool) else value


def _typed(value: object) -> str:
    if value is None:
        return "none"
    return f"the value '{value}' of type '{_TYPE_NAMES.get(type(value), type(value).__name__)}'"
