"""What is routed at a time: no more than one message can ask for by itself, since nothing else is done meanwhile.

What a message costs grows with the words of its key, some patterns' with their square, and with its headers.
One read of a client has thousands of messages: they are looked at in portions, and at other clients' in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from services.rpc.router_pb2 import Message

WORDS: Final = 500
"""Of all keys of a portion, the headers counted too. One message that has more is a portion by itself."""

_HEADER = 16  # bytes of properties that count for a word


def portions(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """The same in their order, in pieces."""
    portion: list[Message] = []
    done = 0
    for message in messages:
        its = words((message.routing_key,), message.properties)
        if portion and done + its > WORDS:
            yield portion
            portion, done = [], 0
        portion.append(message)
        done += its
    if portion:
        yield portion


def words(keys: Iterable[str], properties: bytes = b"") -> int:
    """Of one message, with the headers among its properties."""
    found = len(properties) // _HEADER
    for key in keys:
        found += 1 + key.count(".")
    return found
