"""Batches that are decoded together: what Arrow does costs much for each column, and little for each row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from services.common.ledger.stages import GOING_ON
from services.mgmt.ledger.pace import Rest, no_rest
from services.rpc.ledger_pb2 import LedgerBatch, Place

_AT_ONCE = 120_000  # uids and ranges, as some batches of a busy process have together
_ROW = 8  # a row takes as long as so many of them
_UID = 8
_Packed: TypeAlias = bytes


class Mixed(NamedTuple):
    """A Mixture of proto/ledger.proto: its row is one of these; its places are some of `keys`, from `first` on."""

    row: int
    places: bytes
    sizes: bytes
    first: int
    keys: int


@dataclass(slots=True)
class Joined:
    """Columns as those of LedgerBatch, of all batches one behind another; what they refer to is behind another too."""

    service: list[str] = field(default_factory=list)  # of each batch
    instance: list[str] = field(default_factory=list)
    origin: list[int] = field(default_factory=list)  # of each row: which batch
    row: list[int] = field(default_factory=list)  # its number in the instance
    times_us: list[int] = field(default_factory=list)
    stages: list[int] = field(default_factory=list)
    place: list[int] = field(default_factory=list)
    outcome: list[int] = field(default_factory=list)
    reason: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    ranges: list[int] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    singles: list[int] = field(default_factory=list)
    uids: list[_Packed] = field(default_factory=list)  # of each batch
    words: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)  # each once, whichever batches say it
    bases: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    mixtures: list[Mixed] = field(default_factory=list)
    successions: dict[int, list[int]] = field(default_factory=dict)
    _known: dict[_Packed, int] = field(default_factory=dict)  # places by how they are sent

    def add(self, batch: LedgerBatch) -> None:
        """Raises ValueError for a batch that contradicts itself: it would refer to what others have."""
        _require_sound(batch)
        before, count = len(self.row), len(batch.stages)
        self.row += range(batch.first_row, batch.first_row + count)
        self.origin += [len(self.service)] * count
        self.service.append(batch.service)
        self.instance.append(batch.instance)
        self._add_mixtures(batch, before)
        for each in batch.successions:
            self.successions[before + each.row - batch.first_row] = list(each.firsts)
        places = [self._number(place) for place in batch.places]
        self.place += map(places.__getitem__, batch.place)
        self.bases += map(places.__getitem__, batch.bases)
        self.outcome += _shifted(batch.outcome, len(self.words))
        self.reason += _shifted(batch.reason, len(self.words))
        for name in ("times_us", "stages", "bytes", "ranges", "firsts", "lengths", "singles"):
            getattr(self, name).extend(getattr(batch, name))
        self.uids.append(batch.uids)
        self.words += batch.words
        self.keys += batch.keys

    def _number(self, place: Place) -> int:
        sent = place.SerializeToString()
        number = self._known.get(sent)
        if number is None:
            number = self._known[sent] = len(self.places)
            self.places.append(place)
        return number

    def _add_mixtures(self, batch: LedgerBatch, before: int) -> None:
        for each in batch.mixtures:
            row = each.row - batch.first_row
            if not 0 <= row < len(batch.stages):
                raise ValueError("a mixture of no row")
            keys = min(len(batch.bases), len(batch.keys))
            self.mixtures.append(Mixed(before + row, each.places, each.sizes, len(self.keys), keys))


def joined(batches: Iterable[LedgerBatch], rest: Rest = no_rest) -> Joined:
    """All rows of these. Raises ValueError for one that contradicts itself."""
    found = Joined()
    for batch in batches:
        found.add(batch)
        rest()
    return found


def together(batches: Iterable[LedgerBatch | None]) -> Iterator[list[LedgerBatch | None]]:
    """In their order, as many at a time as are decoded at once; None stands for one that cannot be read."""
    some: list[LedgerBatch | None] = []
    size = 0
    for batch in batches:
        its = _size(batch) if batch else 0
        if some and size + its > _AT_ONCE:
            yield some
            some, size = [], 0
        some.append(batch)
        size += its
    if some:
        yield some


def _size(batch: LedgerBatch) -> int:
    if not GOING_ON.isdisjoint(batch.stages):
        return _AT_ONCE  # ends of rows whose uids are in no order are looked for row by row
    uids = len(batch.uids) // _UID + sum([len(each.places) // 4 for each in batch.mixtures])
    return _ROW * len(batch.ranges) + len(batch.lengths) + uids


def _shifted(column: Sequence[int], by: int) -> Iterable[int]:
    return [each + by for each in column] if by else column


def _require_sound(batch: LedgerBatch) -> None:
    rows = len(batch.ranges)
    columns = (batch.times_us, batch.stages, batch.place, batch.outcome, batch.reason, batch.bytes)
    if any(len(column) != rows for column in columns):
        raise ValueError("columns of rows do not match")
    if sum(batch.ranges) != len(batch.firsts) or len(batch.firsts) != len(batch.lengths):
        raise ValueError("rows and ranges do not match")
    listed = batch.ranges[:].count(0)
    if listed != len(batch.singles) or sum(batch.singles) * _UID != len(batch.uids):
        raise ValueError("rows and uids do not match")
    for column, values in (
        (batch.place, batch.places),
        (batch.bases, batch.places),
        (batch.outcome, batch.words),
        (batch.reason, batch.words),
    ):
        if column and max(column) >= len(values):
            raise ValueError("rows of what is not said")
