"""What differs from message to message of a stream, and what it is sent through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.properties import properties
from benchmarks.wire import NO_TABLE

FRESH = 9_876_543_210
"""The number that stands for every other one where messages never repeat: ten digits that are replaced."""

Binding = tuple[str, bytes]
"""Routing key and arguments."""

_TRANSIENT, _PERSISTENT = properties(), properties(persistent=True)


def _plain(_number: int) -> bytes:
    return _TRANSIENT


def durable(_number: int) -> bytes:
    """The properties of persistent messages that are alike."""
    return _PERSISTENT


def _none(_queue: int) -> Iterable[Binding]:
    return ()


@dataclass(frozen=True, slots=True)
class Stream:
    """`key` and `properties` of a message by its number. Without an exchange type a message goes to its queue by name.

    `fresh`: no two messages are alike: where one writes the number FRESH, with ten digits, each has another.
    `ordered`: what one producer sent to one queue comes in its order.
    """

    exchange: str = ""
    bindings: Callable[[int], Iterable[Binding]] = _none  # of queue 0, 1, …
    key: Callable[[int], str] | None = None
    properties: Callable[[int], bytes] = _plain
    arguments: bytes = NO_TABLE  # of the queues
    consumers: Sequence[bytes] = (NO_TABLE,)  # of each queue: a table of arguments for each
    durable: bool = False  # so are the queues
    fresh: bool = False
    ordered: bool = True


PLAIN = Stream()
