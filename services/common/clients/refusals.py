"""Finds whose messages a refusal names: a batch may be of thousands of publishers, and refused in thousands of pieces.

So the look-up costs only what a refusal names.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from services.common.clients.outbound import Attempt
from services.common.message.indexes import chosen, condensed
from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb


class Refusals:
    """Finds attempts of one batch; made at the batch's first refusal."""

    def __init__(self, attempts: Iterable[Attempt]) -> None:
        self._firsts: dict[SlotId, list[int]] = defaultdict(
            list
        )  # by queue: the index where each of `_attempts` begins
        self._attempts: dict[SlotId, list[Attempt]] = defaultdict(list)
        first = 0
        for attempt in attempts:
            for queue_id in attempt.queues:
                self._firsts[queue_id].append(first)
                self._attempts[queue_id].append(attempt)
            first += len(attempt.messages)

    def parts(self, refusal: pb.Refusal) -> Iterator[tuple[Attempt, Sequence[int]]]:
        """The attempts that a refusal concerns, each with its refused indexes; the refusal counts over the batch."""
        refused, at = chosen(refusal), 0
        queue_id = SlotId(refusal.queue_id)
        firsts, attempts = self._firsts.get(queue_id, ()), self._attempts.get(queue_id, ())
        while at < len(refused) and firsts:
            place = max(bisect_right(firsts, refused[at]) - 1, 0)
            attempt, first = attempts[place], firsts[place]
            begin, at = (bisect_left(refused, each, at) for each in (first, first + len(attempt.messages)))
            if its := _both(refused[begin:at], first, attempt.queues.get(queue_id, ())):
                yield attempt, condensed(its)
            if place + 1 == len(firsts):
                return
            at = bisect_left(refused, firsts[place + 1], at)


def _both(refused: Sequence[int], first: int, its: Sequence[int]) -> Sequence[int]:
    """The refused ones of the ascending `its`; `refused` counts an attempt's messages from `first` on."""
    if isinstance(refused, range):
        begin, end = refused.start - first, refused.stop - first
        return its[bisect_left(its, begin) : bisect_left(its, end)]
    mine = [index - first for index in refused]
    return [index for index in mine if (at := bisect_left(its, index)) < len(its) and its[at] == index]
