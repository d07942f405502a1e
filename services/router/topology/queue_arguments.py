"""What a queue's x-arguments may be: a table, read beside RabbitMQ's documentation. Unknown ones are accepted.

`x-queue-type: quorum` is taken for `classic`: with leases and the shared journal a durable classic queue here survives
the loss of its process, which is what is asked for. As in RabbitMQ it must be durable and not exclusive.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from services.common.errors import PreconditionFailed
from services.router.topology.kinds import Kinds
from services.router.topology.names import called, wrong_with

_MS_AT_MOST = (1 << 32) - 1
_COUNT_AT_MOST = (1 << 63) - 1
_QUORUM = "quorum"
_CLASSIC = "classic"

_Check = Callable[[Any], str | None]  # what is wrong with a value


def _integer(least: int, most: int = _COUNT_AT_MOST) -> _Check:
    def check(value: object) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return f"must be an integer, not {type(value).__name__}"
        return None if least <= value <= most else f"must be {least} to {most}, not {value}"

    return check


def _text(value: object) -> str | None:
    return None if isinstance(value, str) else f"must be text, not {type(value).__name__}"


def _boolean(value: object) -> str | None:
    return None if isinstance(value, bool) else f"must be true or false, not {type(value).__name__}"


def _one_of(choices: Collection[str]) -> _Check:
    def check(value: object) -> str | None:
        known = isinstance(value, str) and value in choices  # a table could not even be looked for
        return None if known else f"must be one of {', '.join(sorted(choices))}, not {value!r}"

    return check


_CHECKS: Mapping[str, _Check] = {
    "x-consumer-timeout": _integer(1, _MS_AT_MOST),
    "x-dead-letter-exchange": wrong_with,
    "x-dead-letter-routing-key": wrong_with,
    "x-dead-letter-strategy": _one_of(("at-most-once", "at-least-once")),
    "x-delivery-limit": _integer(-1),
    "x-expires": _integer(1, _MS_AT_MOST),
    "x-max-in-memory-bytes": _integer(0),
    "x-max-in-memory-length": _integer(0),
    "x-max-length": _integer(0),
    "x-max-length-bytes": _integer(0),
    "x-max-priority": _integer(0, 255),
    "x-message-ttl": _integer(0, _MS_AT_MOST),
    "x-queue-leader-locator": _text,
    "x-queue-master-locator": _text,
    "x-queue-mode": _one_of(("default", "lazy")),
    "x-queue-version": _integer(1, 2),
    "x-quorum-initial-group-size": _integer(1),
    "x-single-active-consumer": _boolean,
}

# A declaration that differs in one of these is of another queue.
COMPARED = (*_CHECKS, "x-overflow", "x-queue-type")
# What it means to leave one out.
DEFAULTS: dict[str, Any] = {"x-queue-type": _CLASSIC}


def check(table: Mapping[str, Any], name: str, virtual_host: str, kinds: Kinds) -> None:
    """Raises PreconditionFailed that names the argument and says what it must be."""
    checks = {
        **_CHECKS,
        "x-overflow": _one_of(kinds.overflow_policies),
        "x-queue-type": _one_of({*kinds.queue_types, _QUORUM}),
    }
    for argument, value in table.items():
        if argument in checks and (wrong := checks[argument](value)):
            raise _invalid(argument, name, virtual_host, wrong)
    if "x-dead-letter-routing-key" in table and "x-dead-letter-exchange" not in table:
        raise _invalid("x-dead-letter-routing-key", name, virtual_host, "needs x-dead-letter-exchange")


def queue_type(table: Mapping[str, Any], name: str, virtual_host: str, *, durable: bool, exclusive: bool) -> str:
    """The plug-in that a checked table asks for; raises PreconditionFailed for what a quorum queue cannot be."""
    chosen: str = table.get("x-queue-type", _CLASSIC)
    if chosen != _QUORUM:
        return chosen
    for allowed, what in ((durable, "non-durable"), (not exclusive, "exclusive-owner")):
        if not allowed:
            raise PreconditionFailed(f"invalid property '{what}' for {called('queue', name, virtual_host)}")
    return _CLASSIC


def _invalid(argument: str, name: str, virtual_host: str, wrong: str) -> PreconditionFailed:
    return PreconditionFailed(f"invalid arg '{argument}' for {called('queue', name, virtual_host)}: {wrong}")
