"""Of a stream that is over, what clients are done with counts, though it is carried out later.

A gateway that has left does not say it again, and one that comes back says all of it. What they gave back is left out:
with the end of the stream it is abandoned, which counts as an attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from services.common.containment import for_each
from services.queue.links.parts import Span, cut, spans_of, work_of
from services.queue.machine.claims import FINAL
from services.rpc.queue_pb2 import LinkFrame, Settle

if TYPE_CHECKING:
    from services.queue.host import Host
    from services.queue.links.link import PeerLink


class LastWords:
    """Of one link, carried out in parts, each in a turn of the event loop. It is `late` until `then`."""

    def __init__(self, host: Host, link: PeerLink, late: int) -> None:
        self._host, self._link, self._late = host, link, late

    def say(self, words: Sequence[Settle], then: Callable[[], None]) -> None:
        """Begins to. Only `then`, when all are said, it is over for those who wait for what the stream still says."""
        for spans in spans_of(words) if words else ():
            self._host.turns.do(work_of(spans), partial(self._settle, spans))
        self._host.turns.do(0, partial(self._said, then))

    def _said(self, then: Callable[[], None]) -> None:
        self._host.late.over(self._late)
        self._host.registry.not_recalled(self._link)
        then()

    def _settle(self, spans: Sequence[Span]) -> None:
        for_each("settling deliveries", cut(spans), partial(self._link.settle, now=self._host.now()))


def last_words(settles: Iterable[Settle]) -> list[Settle]:
    """Those of some settlements that count."""
    return [settle for settle in settles if settle.outcome in FINAL and not settle.transaction]


def last_words_of(frames: Iterable[tuple[LinkFrame, object]]) -> list[Settle]:
    """Those of frames, each with what came with it, that were not carried out before the end."""
    return [settle for frame, _ in frames for settle in last_words(frame.settles)]
