"""The exchanges that every virtual host has from the start (AMQP 0-9-1, 3.1.3)."""

from __future__ import annotations

from services.common.topology.definitions import Exchange

DEFAULT_EXCHANGE = ""

_TYPES = {
    DEFAULT_EXCHANGE: "direct",
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.headers": "headers",
    "amq.match": "headers",
    "amq.topic": "topic",
}


def predeclared(virtual_host: str) -> list[Exchange]:
    return [Exchange(virtual_host, name, type_, durable=True) for name, type_ in _TYPES.items()]


def is_predeclared(exchange: str) -> bool:
    return exchange in _TYPES
