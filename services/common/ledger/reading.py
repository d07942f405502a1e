"""Reads a batch row by row, for a look at a few rows. The filer reads columns instead (services/mgmt/ledger)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from services.common.ledger.packed import NUMBERS, UIDS, unpacked
from services.common.ledger.uid_ranges import compress
from services.rpc.ledger_pb2 import LedgerBatch, Mixture, Place


class StageRow(NamedTuple):
    """Some messages at one stage and place."""

    row: int  # index in the batch
    place: Place
    uids: list[tuple[int, int]]  # first and last of each range


def rows_of(batch: LedgerBatch) -> Iterator[StageRow]:
    """All rows of a batch; a row whose messages were at several places gives several.

    Raises IndexError or ValueError for a batch that contradicts itself.
    """
    mixtures = {each.row - batch.first_row: each for each in batch.mixtures}
    singles = _singles(batch)
    begin = 0
    for row, count in enumerate(batch.ranges):
        its = slice(begin, begin + count)
        begin += count
        ranges = list(zip(batch.firsts[its], batch.lengths[its], strict=True)) or next(singles)
        if row in mixtures:
            yield from _apart(batch, row, mixtures[row], ranges)
        else:
            uids = [(first, first + length - 1) for first, length in ranges]
            yield StageRow(row, batch.places[batch.place[row]], uids)


def _singles(batch: LedgerBatch) -> Iterator[list[tuple[int, int]]]:
    uids, begin = unpacked(UIDS, batch.uids), 0
    for count in batch.singles:
        yield list(zip(*compress(uids[begin : begin + count]), strict=True)) if count else []
        begin += count
    raise ValueError("a row of no messages")


def _apart(batch: LedgerBatch, row: int, mixture: Mixture, ranges: list[tuple[int, int]]) -> Iterator[StageRow]:
    uids = [uid for first, length in ranges for uid in range(first, first + length)]
    found: dict[int, list[int]] = {}
    for uid, number in zip(uids, unpacked(NUMBERS, mixture.places), strict=True):
        found.setdefault(number, []).append(uid)
    for number, its in found.items():
        place = Place()
        place.CopyFrom(batch.places[batch.bases[number]])
        place.routing_key = batch.keys[number]
        yield StageRow(row, place, [(first, first + length - 1) for first, length in zip(*compress(its), strict=True)])
