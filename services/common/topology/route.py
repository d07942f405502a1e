"""Where a message goes: through its exchange, and every exchange that this one hands it on to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from services.common.topology.message import Message
from services.common.topology.source import Source


class Route(NamedTuple):
    """The answer for one message."""

    queue_ids: frozenset[int] | set[int] = frozenset()
    not_local: frozenset[int] | set[int] = frozenset()  # of these, where it does not go that their consumers send
    needs_headers: bool = False  # other headers, or properties, could lead elsewhere
    unknown_exchange: bool = False
    internal: bool = False  # clients may not publish to it
    passed_on: bool = False  # another exchange had a say: with more keys it could have another one
    looks: int = 0  # how often it was looked at what the message says besides its keys: so long it took


_UNKNOWN = Route(unknown_exchange=True)


def route(
    sources: Mapping[str, Source], exchange: str, key: str, message: Message, more_keys: Sequence[str] = ()
) -> Route:
    """By the exchanges of its virtual host. Each queue once, each exchange once: cycles end by themselves.

    With more keys every exchange on the way looks at all of them, whichever led there. One where none of them matches
    anything hands on to its alternate. `needs_headers` is exact: whatever lies behind an
    exchange that was not reached by this key is not reached by any other message with the key either, unless an
    exchange that was reached looks at headers, or a binding there that this key matches has a selector.
    """
    if exchange not in sources:
        return _UNKNOWN
    keys = (key, *more_keys)
    queues: set[int] = set()
    everyones: set[int] = set()
    looks = 0
    seen = {exchange}
    pending = [exchange]
    while pending:
        source = sources.get(pending.pop())
        if source is None:
            continue  # an alternate that does not exist (any more)
        found, its_looks = source.route(keys, message)
        looks += its_looks
        if not found and source.alternate is not None:
            found.add(source.alternate)
        spared = source.not_local(keys, message) if source.sparing else ()
        for destination in found:
            if isinstance(destination, int):
                queues.add(destination)
                if destination not in spared:
                    everyones.add(destination)
            elif destination not in seen:
                seen.add(destination)
                pending.append(destination)
    internal = sources[exchange].definition.internal
    return Route(queues, queues - everyones, looks > 0, internal=internal, passed_on=len(seen) > 1, looks=looks)
