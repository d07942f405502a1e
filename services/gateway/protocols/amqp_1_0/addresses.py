"""Addresses of nodes (part 3, section 3.5: "may be anything"): those of Broker-J, and those of RabbitMQ 3 and 4.

    orders                      the queue, or else the exchange, of that name
    orders/eu                   the exchange and a routing key, unless a queue has the whole for its name
    /queues/Q  /queue/Q         a queue
    /amq/queue/Q
    /exchanges/X  /exchanges/X/K  /exchange/X  /exchange/X/K    an exchange, and perhaps a routing key
    $management                 the virtual host's management node
    /topic/K                    exchange amq.topic and a routing key

Names and keys of RabbitMQ 4's form (`/queues/…`, `/exchanges/…`) are percent-encoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import unquote

from services.common.errors import BrokerError
from services.gateway.protocols.amqp_1_0.conditions import InvalidField
from services.gateway.vocabulary import Node


class Meant(NamedTuple):
    """What an address may mean; `key` None: each message has its own."""

    name: str
    node: Node
    key: str | None = None


def _queue(name: str) -> Meant:
    return Meant(name, Node.QUEUE)


def _exchange(name: str, key: str | None) -> Meant:
    return Meant(name, Node.EXCHANGE, key)


_FORMS: tuple[tuple[re.Pattern[str], Callable[..., Meant]], ...] = tuple(
    (re.compile(form), make)
    for form, make in (
        (r"/queues/([^/]+)", lambda name: _queue(unquote(name))),
        (r"/exchanges/([^/]+)(?:/([^/]*))?", lambda name, key: _exchange(unquote(name), key and unquote(key))),
        (r"/(?:amq/)?queue/(.+)", _queue),
        (r"/exchange/([^/]+)(?:/(.*))?", _exchange),
        (r"/topic/(.+)", lambda key: _exchange("amq.topic", key)),
    )
)


def meanings(text: object) -> list[Meant]:
    """Best first; raises InvalidField for what is no address."""
    if not isinstance(text, str) or not text:
        raise _no_address(text)
    if text.startswith("/"):
        for form, make in _FORMS:
            if found := form.fullmatch(text):
                return [make(*found.groups())]
        raise _no_address(text)
    name, slash, key = text.partition("/")
    whole = [_queue(text), _exchange(text, None)]
    return [*whole, _exchange(name, key)] if slash and name else whole


def _no_address(text: object) -> BrokerError:
    return InvalidField(f"no address of a node is {text!r}")
