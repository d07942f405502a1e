"""Counts messages of each single queue, exchange or connection where settings want that, beside `CountedStages`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from services.common.ledger import stages
from services.common.ledger.encoding import Mixture
from services.common.ledger.place import LedgerPlace
from services.common.metrics.catalogue import messages as m
from services.common.metrics.instrument import Instrument
from services.common.metrics.meters import Labels, Meters
from services.rpc import ledger_pb2 as ledger

OTHERS: Final = "(others)"
"""What all are called together that are too many to be told one by one."""
MOST: Final = 10_000
"""Exchanges, or connections, that one process tells of: clients come as they like, and name exchanges that are none."""
_AGAIN: Final = 2  # an attempt
_WHY: Final = ("reason", "outcome")
_STAGES: Final[Mapping[str, int]] = {
    "received": ledger.RECEIVED,
    "routed": ledger.ROUTED,
    "returned": ledger.RETURNED,
    "confirmed": ledger.CONFIRMED,
    "refused": ledger.REFUSED,
    "sent": ledger.SENT,
    "enqueued": ledger.ENQUEUED,
    "delivered": ledger.DELIVERED,
    "redelivered": ledger.DELIVERED,
    "settled": ledger.SETTLED,
    "requeued": ledger.REQUEUED,
    "expired": ledger.EXPIRED,
    "dead_lettered": ledger.DEAD_LETTERED,
    "dropped": ledger.DROPPED,
}
"""By the last word of an instrument's name."""

_Counts = dict[tuple[int, str, int], int]
"""By stage, outcome or reason, and attempt."""


class CountedEach:
    """Of each of which this process has told anything, and `most` at most: the rest counts together, as OTHERS."""

    def __init__(
        self,
        meters: Meters,
        instruments: Iterable[Instrument],
        labels: Callable[[LedgerPlace], Labels | None],
        most: int | None = None,
    ) -> None:
        """`labels` tells whose a place is: None where it is nobody's."""
        self._labels = labels
        self._most = most
        self._each: dict[Labels, _Counts] = {}
        self._others: dict[Labels, _Counts] = {}
        for instrument in instruments:
            word = instrument.name.rpartition(".")[2]
            why_is_told = not set(_WHY).isdisjoint(instrument.labels)
            meters.read(instrument, self._reader(_STAGES[word], why_is_told, again=word == "redelivered"))

    def __len__(self) -> int:
        return len(self._each)

    def count(self, stage: int, place: LedgerPlace, why: str, count: int) -> None:
        """As many of its messages have reached a stage."""
        if (labels := self._labels(place)) is not None:
            counts, key = self._of(labels), (stage, why, place.attempt)
            counts[key] = counts.get(key, 0) + count

    def count_each(self, stage: int, mixture: Mixture, why: str) -> None:
        """The same of messages that are each at a place of their own."""
        for index, count in Counter(mixture.which).items():
            self.count(stage, mixture.places[index][0], why, count)

    def keep(self, is_there: Callable[[Labels], bool]) -> None:
        """Of those that are there alone; one of the same name begins at 0."""
        self._each = {labels: counts for labels, counts in self._each.items() if is_there(labels)}

    def forget(self, *labels: str) -> None:
        """It is gone; one of its name begins at 0."""
        self._each.pop(labels, None)

    def _of(self, labels: Labels) -> _Counts:
        counts = self._each.get(labels)
        if counts is None:
            into = self._each
            if self._most is not None and len(into) >= self._most:
                into, labels = self._others, (OTHERS,) * len(labels)
            counts = into.setdefault(labels, {})
        return counts

    def _reader(self, stage: int, why_is_told: bool, *, again: bool) -> Callable[[], Iterator[tuple[Labels, int]]]:
        def read() -> Iterator[tuple[Labels, int]]:
            for labels, counts in (*self._each.items(), *self._others.items()):
                found: defaultdict[Labels, int] = defaultdict(int)
                for (its, why, attempt), count in counts.items():
                    if its == stage and (attempt == _AGAIN or not again):
                        found[(*labels, why) if why_is_told else labels] += count
                yield from found.items()

        return read


class CountedQueues(CountedEach):
    """A queue that moves on keeps its counts here: they grow. It is forgotten when it is deleted, so there are no more
    of them than queues.
    """

    def __init__(self, meters: Meters) -> None:
        super().__init__(meters, m.COUNTED_PER_QUEUE, _queue)

    def count(self, stage: int, place: LedgerPlace, why: str, count: int) -> None:
        """Of one queue, unless it is gone."""
        if why != stages.QUEUE_DELETED:
            super().count(stage, place, why, count)


def counted_exchanges(meters: Meters) -> CountedEach:
    """Of a gateway."""
    return CountedEach(meters, m.COUNTED_PER_EXCHANGE, lambda place: (place.virtual_host, place.exchange), MOST)


def counted_connections(meters: Meters) -> CountedEach:
    """Of a gateway."""
    return CountedEach(meters, m.COUNTED_PER_CONNECTION, _connection, MOST)


def _queue(place: LedgerPlace) -> Labels | None:
    return (place.virtual_host, place.queue) if place.queue else None


def _connection(place: LedgerPlace) -> Labels | None:
    return (place.virtual_host, place.connection) if place.connection else None
