"""Links by which a session's client publishes: how each settles, what it has published, and what it is to hear of that.

A number that a message has is its engine's: it is handed back with what became of the message, and means nothing here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter
from typing import Final

from services.common.message.alike import total
from services.common.message.indexes import runs
from services.gateway.outcomes import PublishDisposition, PublishOutcome
from services.gateway.vocabulary import Kind, Publish

MOST: Final = 1000
"""Exchanges that a link has published to; beyond, the one that came first is forgotten."""

_EXCHANGE: Final = attrgetter("facts.exchange")
OWN: Final = 0
"""The number of a session's own link, of protocols that publish without links."""


class InboundLink:
    """One of them."""

    __slots__ = ("number", "published", "settled")

    def __init__(self, number: int, *, settled: bool) -> None:
        """`settled`: its client does not want to hear what becomes of messages."""
        self.number = number
        self.settled = settled
        self.published: dict[str, list[int]] = {}  # by exchange: messages, and bytes of their bodies

    def note(self, request: Publish, kinds: Collection[Kind]) -> None:
        """It has published; `kinds` are those of the request, each once."""
        if len(set(map(_EXCHANGE, kinds))) == 1:
            self._add(next(iter(kinds)).facts.exchange, len(request.bodies), total(request.bodies))
        else:
            for kind, body in zip(request.kinds, request.bodies, strict=True):
                self._add(kind.facts.exchange, 1, len(body))

    def _add(self, exchange: str, count: int, size: int) -> None:
        if (each := self.published.get(exchange)) is None:
            each = self.published[exchange] = [0, 0]
            if len(self.published) > MOST:
                del self.published[next(iter(self.published))]
        each[0] += count
        each[1] += size


class InboundLinks:
    """Those of one session, and what is to be told of what they have published."""

    __slots__ = ("_links", "_to_tell")

    def __init__(self) -> None:
        self._links: dict[int, InboundLink] = {}
        self._to_tell: list[PublishDisposition] = []

    def begin(self, number: int, *, settled: bool) -> None:
        """A link is there, or settles otherwise from now on."""
        self.of(number).settled = settled

    def end(self, number: int) -> None:
        """A link is gone. What it has published is still told of."""
        self._links.pop(number, None)

    def of(self, number: int) -> InboundLink:
        """The link of that number; one of which nothing was said is settled."""
        link = self._links.get(number)
        if link is None:
            link = self._links[number] = InboundLink(number, settled=True)
        return link

    def published_by(self, number: int) -> Mapping[str, Sequence[int]]:
        """Messages and bytes of a link by exchange."""
        link = self._links.get(number)
        return link.published if link else {}

    @property
    def confirmed(self) -> bool:
        """Whether the client wants to hear what becomes of some of what it publishes."""
        return any(not link.settled for link in self._links.values())

    def complete(self, link: int, first: int, indexes: Sequence[int], outcome: PublishOutcome) -> None:
        """Something became of messages, of a batch whose first has this number."""
        add = self._to_tell.append
        for start, count in runs(indexes):
            add(PublishDisposition(link, first + start, first + start + count - 1, outcome))

    def take(self) -> list[PublishDisposition]:
        """What is to be told since the last call."""
        taken, self._to_tell = self._to_tell, []
        return taken
