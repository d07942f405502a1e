"""What a route costs among 100 bindings and among 100,000: it must grow with what matches, not with what is bound.

`python -m benchmarks.routing` prints microseconds per route. Every binding set has a share that every message has in
common (a first word, a first header), so that an index that only narrows by it would show.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from services.common.message import arguments
from services.common.topology.exchanges.exchange_type import Binding, ExchangeType
from services.common.topology.exchanges.headers import HeadersExchange
from services.common.topology.exchanges.topic import TopicExchange

_SIZES = (100, 100_000)
_ROUTES = 20_000

_Message = tuple[str, Mapping[str, Any]]


def _topic_binding(number: int) -> Binding:
    pattern = (f"order.*.item{number}", f"order.eu.item{number}.#", f"#.item{number}")[number % 3]
    return Binding(number, pattern)


def _topic_message(number: int) -> _Message:
    return f"order.eu.item{number}", {}


def _headers_binding(number: int) -> Binding:
    match = ("all", "any")[number % 2]
    shared = {"kind": "order"} if match == "all" else {}
    return Binding(number, "", arguments.dump({"x-match": match, **shared, "item": number}))


def _headers_message(number: int) -> _Message:
    return "", {"kind": "order", "item": number, "region": "eu", "weight": 1.5}


_CASES: list[tuple[str, type[ExchangeType], Callable[[int], Binding], Callable[[int], _Message]]] = [
    ("topic", TopicExchange, _topic_binding, _topic_message),
    ("headers", HeadersExchange, _headers_binding, _headers_message),
]


def _measure(exchange: ExchangeType, messages: list[_Message]) -> float:
    """Microseconds per route, the best of three rounds; every message must match exactly one binding."""
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        for key, headers in messages:
            if len(exchange.route(key, headers)) != 1:
                raise AssertionError(f"{key} {headers} does not match exactly one binding")
        best = min(best, time.perf_counter() - began)
    return best / len(messages) * 1e6


def main() -> None:
    """Prints one line for each exchange type."""
    print(f"{'exchange':<10}{'bindings':>10}{'µs to bind':>12}{'µs to route':>13}{'ratio':>8}")
    for name, kind, binding, message in _CASES:
        smallest = 0.0
        for size in _SIZES:
            exchange = kind()
            began = time.perf_counter()
            for number in range(size):
                exchange.bind(binding(number))
            bound = (time.perf_counter() - began) / size * 1e6
            routed = _measure(exchange, [message(number * 7919 % size) for number in range(_ROUTES)])
            smallest = smallest or routed
            print(f"{name:<10}{size:>10,}{bound:>12.2f}{routed:>13.2f}{routed / smallest:>8.2f}")


if __name__ == "__main__":
    main()
