"""From rows to a batch on the wire (proto/ledger.proto): columns, and what repeats said once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


def seal(
    header: LedgerBatch, first_row: int, rows: Sequence[Row], identified: Sequence[Identified]
) -> Iterator[Sealed]:
    """Batches that begin as `header` does, with row numbers from `first_row` on; several when one would be too big.

    What was identified goes with the first.
    """
    ranges = [compress(row[3], in_order=row[1] == DEAD_LETTERED) for row in rows]
    for group, its_ranges in _groups(rows, ranges):
        batch = LedgerBatch(service=header.service, instance=header.instance, first_row=first_row)
        _add_rows(batch, group)
        _add_ranges(batch, group, its_ranges)
        _add_identified(batch, identified)
        identified = ()
        yield Sealed(first_row, len(group), batch.SerializeToString())
        first_row += len(group)


def _groups(rows: Sequence[Row], ranges: Sequence[Ranges]) -> Iterator[tuple[Sequence[Row], Sequence[Ranges]]]:
    """Rows that fit into a batch together."""
    if sum([len(firsts) for firsts, _ in ranges]) <= MOST_RANGES:
        yield rows, ranges
        return
    group: tuple[list[Row], list[Ranges]] = [], []
    size = 0
    for row, its in zip(rows, ranges, strict=True):
        for part in _parts(row, its):
            count = len(part[1][0])
            if size + count > MOST_RANGES:
                yield group
                group, size = ([], []), 0
            group[0].append(part[0])
            group[1].append(part[1])
            size += count
    yield group


def _parts(row: Row, ranges: Ranges) -> Iterator[tuple[Row, Ranges]]:
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


def _add_rows(batch: LedgerBatch, rows: Sequence[Row]) -> None:
    times, stages, places, _, outcomes, reasons, sizes, _ = zip(*rows, strict=True)
    batch.times_us.extend(times)
    batch.stages.extend(stages)
    batch.bytes.extend(sizes)
    _add_places(batch, places)
    words = {word: number for number, word in enumerate({"": None} | dict.fromkeys(outcomes) | dict.fromkeys(reasons))}
    batch.words.extend(words)
    batch.outcome.extend(map(words.__getitem__, outcomes))
    batch.reason.extend(map(words.__getitem__, reasons))


def _add_ranges(batch: LedgerBatch, rows: Sequence[Row], ranges: Sequence[Ranges]) -> None:
    batch.firsts.extend(chain.from_iterable([firsts for firsts, _ in ranges]))
    batch.lengths.extend(chain.from_iterable([lengths for _, lengths in ranges]))
    batch.ranges.extend([len(firsts) for firsts, _ in ranges])
    for index, row in enumerate(rows):
        if row[7] is not None:
            batch.successions.add(row=batch.first_row + index, firsts=_successors(row[7], ranges[index][1]))


def _successors(successors: range, lengths: Sequence[int]) -> Iterator[int]:
    """The first of each range; they were given in the order of the uids."""
    following = successors.start
    for length in lengths:
        yield following
        following += length


def _add_places(batch: LedgerBatch, places: Sequence[Place]) -> None:
    # By identity first: there are few objects, and comparing tuples of twelve costs more than all the rest.
    identities = list(map(id, places))
    numbers: dict[Place, int] = {}
    by_identity = {}
    for identity, place in dict(zip(identities, places, strict=True)).items():
        by_identity[identity] = numbers.setdefault(place, len(numbers))
    for place in numbers:
        batch.places.add(**place._asdict())
    batch.place.extend(map(by_identity.__getitem__, identities))


def _add_identified(batch: LedgerBatch, identified: Iterable[Identified]) -> None:
    for each in identified:
        batch.identified.add(format=each.format, uids=each.uids, properties=each.properties)
