"""The ledger as it reached NATS, read without the product's own reader."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from services.rpc.ledger_pb2 import LedgerBatch, Place, Stage


class Row(NamedTuple):
    """One stage of some messages; `place` has virtual_host, exchange, routing_key, queue, partition, epoch, … ."""

    time_us: int
    service: str
    instance: str
    stage: str  # enqueued, persisted, …
    place: Any
    outcome: str
    reason: str
    ranges: tuple[tuple[int, int], ...]  # first uid, count
    successors: tuple[int, ...]  # the first uid of each range, for dead-lettered ones

    @property
    def uids(self) -> list[int]:
        """All of them."""
        return [uid for first, count in self.ranges for uid in range(first, first + count)]


class Ledger:
    """Batches are read when rows are asked for."""

    def __init__(self, batches: Iterable[bytes]) -> None:
        self._batches = list(batches)

    def rows(self) -> Iterator[Row]:
        """In the order in which NATS had them; those of one instance are in order."""
        for each in self._batches:
            yield from _rows(LedgerBatch.FromString(each))


def _rows(batch: LedgerBatch) -> Iterator[Row]:
    places, words = list(batch.places), list(batch.words)
    follow = {each.row - batch.first_row: tuple(each.firsts) for each in batch.successions}
    pairs = list(zip(batch.firsts, batch.lengths, strict=True))
    columns = zip(batch.times_us, batch.stages, batch.place, batch.outcome, batch.reason, batch.ranges, strict=True)
    mixtures = {
        each.row - batch.first_row: struct.unpack(f"<{len(each.places) // 4}I", each.places) for each in batch.mixtures
    }
    singles = _singles(batch)
    at = 0
    for number, (time_us, stage, place, outcome, reason, count) in enumerate(columns):
        ranges = tuple(pairs[at : at + count]) or next(singles)
        at += count
        name = Stage.Name(Stage.ValueType(stage)).lower()
        what = time_us, batch.service, batch.instance, name
        why = words[outcome], words[reason]
        if number not in mixtures:
            yield Row(*what, places[place], *why, ranges, follow.get(number, ()))
            continue
        uids = [uid for first, some in ranges for uid in range(first, first + some)]
        for uid, keyed in zip(uids, mixtures[number], strict=True):
            yield Row(*what, _keyed(batch, keyed), *why, ((uid, 1),), ())


def _singles(batch: LedgerBatch) -> Iterator[tuple[tuple[int, int], ...]]:
    uids = struct.unpack(f"<{len(batch.uids) // 8}Q", batch.uids)
    at = 0
    for count in batch.singles:
        yield tuple((uid, 1) for uid in uids[at : at + count])
        at += count


def _keyed(batch: LedgerBatch, number: int) -> Any:
    place = Place()
    place.CopyFrom(batch.places[batch.bases[number]])
    place.routing_key = batch.keys[number]
    return place
