"""What Qpid's exchange.bound-ok says: reply codes of its own, of which none ends anything."""

from __future__ import annotations

from services.gateway.answers import BindingFound
from services.gateway.protocols.amqp_0_9.methods import exchange

_OK = 0
_EXCHANGE_NOT_FOUND = 1
_QUEUE_NOT_FOUND = 2

# (asked with a queue, with a routing key) → what it says when there is no such binding.
_NOT_BOUND = {
    (False, False): (3, "Exchange '{0.exchange}' has no bindings"),
    (True, False): (4, "Queue '{0.queue}' not bound to exchange '{0.exchange}'"),
    (False, True): (5, "No queue bound with routing key '{0.routing_key}' to exchange '{0.exchange}'"),
    (True, True): (
        6,
        "Queue '{0.queue}' not bound with routing key '{0.routing_key}' to exchange '{0.exchange}'",
    ),
}
_LONGEST_TEXT = 255


def bound_ok(asked: exchange.Bound, found: BindingFound) -> exchange.BoundOk:
    """The answer to `asked`."""
    code, text = _said(asked, found)
    return exchange.BoundOk(code, text.format(asked).encode()[:_LONGEST_TEXT].decode(errors="ignore"))


def _said(asked: exchange.Bound, found: BindingFound) -> tuple[int, str]:
    if found.unknown_exchange:
        return _EXCHANGE_NOT_FOUND, "Exchange '{0.exchange}' not found"
    if found.unknown_queue:
        return _QUEUE_NOT_FOUND, "Queue '{0.queue}' not found"
    return (_OK, "") if found.is_bound else _NOT_BOUND[bool(asked.queue), bool(asked.routing_key)]
