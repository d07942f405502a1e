"""What Broker-J's words for a queue mean in RabbitMQ's, which the rules are written in; and how long messages live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.choices import ALTERNATE, BYTES, LEAST_TTL, LIFETIME, MOST, MOST_ATTEMPTS, MOST_TTL
from tests.simulation.history import Sent

if TYPE_CHECKING:
    from tests.simulation.judge.facts import Queue


def meant(arguments: dict[str, Any]) -> dict[str, object]:
    """With RabbitMQ's words for what they say; of a limit of bytes nobody here knows how many messages they are."""
    found: dict[str, object] = dict(arguments)
    if arguments.get("qpid.policy_type") == "REJECT":
        found |= {"x-max-length": arguments[MOST], "x-overflow": "reject-publish"}
    if BYTES in arguments:
        found["x-max-length"] = 0
    if MOST_TTL in arguments:
        found["x-message-ttl"] = arguments[MOST_TTL]
    if MOST_ATTEMPTS in arguments:
        found["x-delivery-limit"] = arguments[MOST_ATTEMPTS] - 1
    if alternate := arguments.get(ALTERNATE):
        found["x-dead-letter-exchange"] = alternate["destination"]
        if attributes := alternate.get("attributes"):
            found["x-dead-letter-routing-key"] = attributes["routingKey"]
    return found


def goes_unused(arguments: dict[str, Any]) -> bool:
    """Whether an argument says that the queue goes with its last consumer."""
    return str(arguments.get(LIFETIME, "")).startswith("DELETE_ON_NO_")


def lives_for(sent: Sent, queue: Queue) -> int | None:
    """Milliseconds; None: for ever."""
    own = None if sent.ttl is None else max(sent.ttl, int(str(queue.arguments.get(LEAST_TTL, 0))))
    of_queue = queue.arguments.get("x-message-ttl")
    return min((int(str(each)) for each in (own, of_queue) if each is not None), default=None)
