"""What a router is asked in one call: no more than one message can ask for by itself, since it does nothing else then.

What a message costs a router grows with the words of its key, some patterns' with their square, and with its headers.
One read of a client has thousands of messages: the router looks at them in portions, and at other clients' in between.
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
    words = 0
    for message in messages:
        its = _words(message)
        if portion and words + its > WORDS:
            yield portion
            portion, words = [], 0
        portion.append(message)
        words += its
    if portion:
        yield portion


def _words(message: Message) -> int:
    return 1 + message.routing_key.count(".") + len(message.properties) // _HEADER
