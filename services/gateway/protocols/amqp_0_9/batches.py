"""Requests that publish: one for all that a channel published since anything else was asked.

Channels that publish in turn would else have a request for each message. Their order among each other is nobody's
(section 4.7: a channel's own is kept); but nothing that is asked on any channel is overtaken by what came behind it,
save for settlements of other channels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias, cast

from services.common.message.alike import are_alike
from services.gateway.protocols.amqp_0_9.channel import Channel
from services.gateway.protocols.amqp_0_9.peer import Peer
from services.gateway.vocabulary import Kind, Publish

Columns: TypeAlias = tuple[list[Kind], list[bytes], list[bytes]]
"""Of a request: kinds, properties, bodies."""

MOST: Final = 128
"""Requests, after which none begins that publishes: as many channels in turn have a request each for all of a read. One
takes less than others do, of which there may be `PORTION`.
"""


def batch_of(peer: Peer, channel: Channel) -> Columns:
    """Where the next publishes of the channel, one at least, belong; only who called this adds to them."""
    request = peer.publishes.get(channel)
    if request is None:
        columns: Columns = [], [], []
        peer.publish(channel, Publish(channel.number, *columns, channel.confirms.next if channel.confirms else 0))
        return columns
    return cast("Columns", (request.kinds, request.properties, request.bodies))


def takes(peer: Peer, channel: Channel) -> bool:
    """Whether a publish of the channel may come next, and belongs to a request that there is room for."""
    return channel.takes_methods and (channel in peer.publishes or len(peer.requests) < MOST)


def taking(peer: Peer) -> Callable[[Channel], bool]:
    """The same for publishes that are all read before the first of them is added."""
    room, known = MOST - len(peer.requests), set[Channel]()

    def takes(channel: Channel) -> bool:
        nonlocal room
        if channel not in known:
            begins = channel not in peer.publishes
            if not channel.takes_methods or (begins and room <= 0):
                return False
            room -= begins
            known.add(channel)
        return True

    return takes


def apart(channels: Sequence[Channel], columns: Columns) -> Iterable[tuple[Channel, Columns]]:
    """The columns of each of these channels, one for each message; its own stay in their order."""
    if are_alike(channels):
        return ((channels[0], columns),)
    indexes: defaultdict[Channel, list[int]] = defaultdict(list)
    for index, channel in enumerate(channels):
        indexes[channel].append(index)
    kinds, properties, bodies = columns
    return [
        (channel, ([kinds[at] for at in its], [properties[at] for at in its], [bodies[at] for at in its]))
        for channel, its in indexes.items()
    ]
