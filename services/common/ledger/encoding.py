"""From rows to a batch on the wire (proto/ledger.proto): columns, and what repeats said once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from services.common.ledger.place import Place
from services.common.ledger.uid_ranges import Ranges, compress
from services.rpc.ledger_pb2 import DEAD_LETTERED, LedgerBatch

MOST_RANGES = 30_000  # in a batch, which has to stay below NATS's limit of 1 MiB for a message


class Row(NamedTuple):
    """One stage reached by some messages; a plain tuple of the same shape does."""

    time_us: int
    stage: int
    place: Place
    uids: Sequence[int]
    outcome: str
    reason: str
    size: int
    successors: range | None


class Identified(NamedTuple):
    """Messages with properties that name them; one for all, or one for each."""

    format: str
    uids: Sequence[int]
    properties: Sequence[bytes]


class Sealed(NamedTuple):
    """A batch ready to be sent: `rows` rows from number `first_row` on."""

    first_row: int
    rows: int
    payload: bytes


class Draft:
    """A batch in the making: rows are encoded as they are added, so that ending it holds nothing up.

    Begins as `header` does; its rows are numbered from `first_row` on.
    """

    def __init__(self, header: LedgerBatch, first_row: int) -> None:
        self.first_row = first_row
        self.rows = 0
        self.room = MOST_RANGES
        """So many ranges may still be added."""
        self._batch = LedgerBatch(service=header.service, instance=header.instance, first_row=first_row, words=[""])
        self._places: dict[Place, int] = {}
        self._words = {"": 0}

    @property
    def next_row(self) -> int:
        """The number of the next row that is added, here or to another draft."""
        return self.first_row + self.rows

    def add(self, rows: Sequence[Row], ranges: Sequence[Ranges]) -> None:
        """Adds rows with the ranges of their uids (see `ranges_of`)."""
        times, stages, places, _, outcomes, reasons, sizes, _ = zip(*rows, strict=True)
        batch = self._batch
        batch.times_us.extend(times)
        batch.stages.extend(stages)
        batch.bytes.extend(sizes)
        batch.place.extend(self._numbers_of_places(places))
        batch.outcome.extend(self._numbers_of_words(outcomes))
        batch.reason.extend(self._numbers_of_words(reasons))
        self._add_ranges(rows, ranges)
        self.rows += len(rows)

    def identify(self, identified: Sequence[Identified]) -> None:
        """Adds properties of messages."""
        for each in identified:
            self._batch.identified.add(format=each.format, uids=each.uids, properties=each.properties)

    def sealed(self) -> Sealed:
        """All that was added."""
        return Sealed(self.first_row, self.rows, self._batch.SerializeToString())

    def _numbers_of_places(self, places: Sequence[Place]) -> Iterator[int]:
        # By identity first: there are few objects, and comparing tuples of twelve costs more than all the rest.
        identities = list(map(id, places))
        by_identity = {}
        for identity, place in dict(zip(identities, places, strict=True)).items():
            number = self._places.get(place)
            if number is None:
                number = self._places[place] = len(self._places)
                self._batch.places.add(**place._asdict())
            by_identity[identity] = number
        return map(by_identity.__getitem__, identities)

    def _numbers_of_words(self, words: Sequence[str]) -> Iterator[int]:
        for word in dict.fromkeys(words):
            if word not in self._words:
                self._words[word] = len(self._words)
                self._batch.words.append(word)
        return map(self._words.__getitem__, words)

    def _add_ranges(self, rows: Sequence[Row], ranges: Sequence[Ranges]) -> None:
        counts = [len(firsts) for firsts, _ in ranges]
        self.room -= sum(counts)
        self._batch.ranges.extend(counts)
        self._batch.firsts.extend(chain.from_iterable([firsts for firsts, _ in ranges]))
        self._batch.lengths.extend(chain.from_iterable([lengths for _, lengths in ranges]))
        for index, row in enumerate(rows, self.next_row):
            if row[7] is not None:
                self._batch.successions.add(row=index, firsts=_successors(row[7], ranges[index - self.next_row][1]))


def ranges_of(row: Row) -> Ranges:
    """The ranges that the uids of a row make up."""
    return compress(row[3], in_order=row[1] == DEAD_LETTERED)


def parts(row: Row, ranges: Ranges) -> Iterator[tuple[Row, Ranges]]:
    """A row that has more ranges than a batch may have, as several; bytes count once."""
    firsts, lengths = ranges
    time_us, stage, place, uids, outcome, reason, size, successors = row
    for start in range(0, len(firsts), MOST_RANGES):
        end = start + MOST_RANGES
        count = sum(lengths[start:end])
        follow = None if successors is None else successors[:count]
        successors = None if successors is None else successors[count:]
        part = (time_us, stage, place, uids, outcome, reason, 0 if start else size, follow)
        yield part, (firsts[start:end], lengths[start:end])  # type: ignore[misc]  # plain, as all rows are


def _successors(successors: range, lengths: Sequence[int]) -> Iterator[int]:
    """The first of each range; they were given in the order of the uids."""
    following = successors.start
    for length in lengths:
        yield following
        following += length
