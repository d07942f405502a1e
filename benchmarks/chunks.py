"""What a producer sends, encoded: chunks of messages, the same over and over, or each message another."""

from __future__ import annotations

from itertools import count, cycle
from typing import TYPE_CHECKING

from benchmarks.stream import FRESH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.load import Destination

_FIRST = 3_600_000  # the number of a producer's first message: as an expiration, an hour


def chunks(destination: Destination, producer: int) -> Iterator[memoryview]:
    """Without end; each holds as many messages as the load says."""
    load = destination.load
    messages = [destination.message(producer, number, body) for number, body in enumerate(load.bodies)]
    return (_fresh if load.stream.fresh else _repeated)(messages, load.chunk_messages)


def _repeated(messages: Sequence[bytes], size: int) -> Iterator[memoryview]:
    return cycle([memoryview(b"".join(messages[at : at + size])) for at in range(0, len(messages), size)])


def _fresh(messages: Sequence[bytes], size: int) -> Iterator[memoryview]:
    """With a number of its own in the place of that which stands for all."""
    parts = [message.split(b"%010d" % FRESH) for message in messages]
    groups = cycle([parts[at : at + size] for at in range(0, len(parts), size)])
    for first in count(_FIRST, size):
        numbers = [b"%010d" % number for number in range(first, first + size)]
        yield memoryview(b"".join([n.join(around) for n, around in zip(numbers, next(groups), strict=True)]))
