"""Writes the rows that batches leave on their way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spark.generate.batches import Batches, Bools, Copies, Ints, moving
from spark.generate.plan import DEAD, Fate, Publish
from spark.generate.rows import GATEWAY, NO_QUEUE, OUTCOMES, QUEUE, REASONS, Rows

_LOST = (Fate.NEVER_ENQUEUED, Fate.NOT_RECOVERED)
_NOT_DELIVERED = (*_LOST, Fate.WAITING, Fate.EXPIRED, Fate.DEAD_EXPIRED, Fate.DEAD_MAXLEN, Fate.DROPPED)
_NOT_ACCEPTED = (*_NOT_DELIVERED, Fate.UNSETTLED, Fate.DEAD_REJECTED, Fate.REJECTED)
_AFTER_MOVE = 2_000  # µs

Values = dict[str, Ints | int]


def publish_rows(rows: Rows, batches: Batches, random: np.random.Generator) -> None:
    """What gateways say of whole batches."""
    whole: Values = {"gateway": batches.gateway, "queue": NO_QUEUE, "first": batches.first}
    ends = batches.first + batches.size

    def add(stage: str, delay: int, which: Bools | None = None, reason: str = "") -> None:
        end = ends if which is None else np.where(which, ends, batches.first)
        time = batches.received + delay
        rows.add(stage, GATEWAY, {**whole, "end": end, "time": time, "reason": REASONS.index(reason)})

    publish = batches.publish
    add("received", 0)
    add("returned", 80, publish == Publish.RETURNED, "no_route")
    add("dropped", 80, publish == Publish.UNROUTABLE, "unroutable")
    add("refused", 900, publish == Publish.REFUSED, "overflow")
    add("rolled_back", 500, publish == Publish.ROLLED_BACK)
    confirmed = np.isin(publish, (Publish.CONFIRMED, Publish.RETURNED, Publish.UNROUTABLE))
    # Confirms go out as the queues answer: not in the pieces in which messages came.
    middle = batches.first + (random.random(len(batches.size)) * (batches.size + 1)).astype(np.int64)
    end = np.where(confirmed, ends, batches.first)
    time = batches.received + 5_000
    rows.add("confirmed", GATEWAY, {**whole, "end": np.minimum(middle, end), "time": time})
    rows.add("confirmed", GATEWAY, {**whole, "first": middle, "end": np.where(confirmed, ends, middle), "time": time})


@dataclass(frozen=True, slots=True)
class Times:
    """When the copies' later stages are, in µs, and under which epoch of the partition."""

    enqueued: Ints
    delivered: Ints
    settled: Ints
    epoch: Ints  # when enqueued
    later_epoch: Ints
    crossing: Bools  # another owner takes the partition while they are in the queue


def draw_times(copies: Copies, random: np.random.Generator, moves_at: int) -> Times:
    """Partitions that move do it at `moves_at`; what is in their queues then goes on under the new owner."""
    count = len(copies.batch)
    enqueued = copies.routed + random.integers(200, 2_000, count)
    wait = (random.exponential(50_000, count)).astype(np.int64) + 3_000
    stays = np.isin(copies.fate, (Fate.WAITING, Fate.UNSETTLED, Fate.NOT_RECOVERED))
    moves = moving(copies.queue)
    crossing = moves & (enqueued < moves_at) & ((enqueued + wait + 300_000 >= moves_at) | stays)
    epoch = 1 + copies.queue % 3
    moved = moves & (enqueued >= moves_at)
    delivered = np.where(crossing, moves_at + _AFTER_MOVE, enqueued) + wait
    settled = delivered + 1_000 + random.exponential(20_000, count).astype(np.int64)
    return Times(enqueued, delivered, settled, epoch + moved, epoch + (moved | crossing), crossing)


def copy_rows(
    rows: Rows, copies: Copies, refused: Bools, times: Times, random: np.random.Generator, moves_at: int
) -> None:
    """What gateways and queue processes say of copies in queues; `refused` ones never get into theirs."""
    writer = _CopyRows(rows, copies, times, ~refused)
    writer.part("routed", GATEWAY, copies.routed, np.ones(len(refused), np.bool_), everything=True)
    _enqueue(writer, moves_at)
    _deliver(writer, random)
    _settle(writer, random)
    _end_unusually(writer)


def _enqueue(writer: _CopyRows, moves_at: int) -> None:
    times, copies, fate = writer.times, writer.copies, writer.copies.fate
    never = fate == Fate.NEVER_ENQUEUED
    early: Values = {"epoch": times.epoch}
    for stage, time, which in (
        ("enqueued", times.enqueued, writer.taken),
        ("persisted", times.enqueued + 1_500, writer.taken & copies.durable),
    ):
        writer.all_but_part(stage, time, which, never, early)
    twice = writer.taken & (fate == Fate.ENQUEUED_TWICE)
    writer.part("enqueued", QUEUE, times.enqueued + 700, twice, epoch=times.epoch)
    moved_at = np.full(len(fate), moves_at + 1_000)
    recovered = writer.taken & times.crossing
    values: Values = {"reason": REASONS.index("journal"), "epoch": times.later_epoch}
    writer.all_but_part("recovered", moved_at, recovered, np.isin(fate, _LOST), values)


def _deliver(writer: _CopyRows, random: np.random.Generator) -> None:
    times, fate = writer.times, writer.copies.fate
    but = np.isin(fate, _NOT_DELIVERED)
    writer.pieces("delivered", QUEUE, times.delivered, but, random, attempt=1)
    writer.pieces("sent", GATEWAY, times.delivered + 120, but, random)
    again = writer.taken & (fate == Fate.REDELIVERED)
    writer.part("requeued", QUEUE, times.delivered + 300, again, reason=REASONS.index("consumer_gone"))
    writer.part("delivered", QUEUE, times.delivered + 600, again, attempt=2)


def _settle(writer: _CopyRows, random: np.random.Generator) -> None:
    times, fate = writer.times, writer.copies.fate
    accepted, rejected = OUTCOMES.index("accepted"), OUTCOMES.index("rejected")
    writer.pieces("settled", QUEUE, times.settled, np.isin(fate, _NOT_ACCEPTED), random, outcome=accepted)
    refused = writer.taken & np.isin(fate, (Fate.DEAD_REJECTED, Fate.REJECTED))
    writer.part("settled", QUEUE, times.settled, refused, outcome=rejected)
    twice = writer.taken & (fate == Fate.SETTLED_TWICE)
    writer.part("settled", QUEUE, times.settled + 900, twice, outcome=accepted)
    again = writer.taken & (fate == Fate.DELIVERED_AFTER_SETTLED)
    writer.part("delivered", QUEUE, times.settled + 5_000, again, attempt=2)


def _end_unusually(writer: _CopyRows) -> None:
    fate, ended = writer.copies.fate, writer.times.settled + 100
    expired = writer.taken & np.isin(fate, (Fate.EXPIRED, Fate.DEAD_EXPIRED))
    writer.part("expired", QUEUE, ended, expired, reason=REASONS.index("message_ttl"))
    for one, stage, reason in (
        (Fate.DROPPED, "dropped", "maxlen"),
        (Fate.REJECTED, "dropped", "rejected"),
        (Fate.DEAD_EXPIRED, "dead_lettered", "expired"),
        (Fate.DEAD_REJECTED, "dead_lettered", "rejected"),
        (Fate.DEAD_MAXLEN, "dead_lettered", "maxlen"),
    ):
        successor = writer.copies.successor if one in DEAD else 0
        which = writer.taken & (fate == one)
        writer.part(stage, QUEUE, ended + 50, which, reason=REASONS.index(reason), successor=successor)


@dataclass(frozen=True, slots=True)
class _CopyRows:
    rows: Rows
    copies: Copies
    times: Times
    taken: Bools

    def part(
        self, stage: str, service: int, time: Ints, which: Bools, *, everything: bool = False, **values: Ints | int
    ) -> None:
        """A row for the part of each copy that has its fate; or for everything."""
        copies = self.copies
        first = copies.first if everything else copies.first + copies.start
        end = copies.first + (copies.size if everything else copies.end)
        self._add(stage, service, time, {"first": first, "end": np.where(which, end, first), **values})

    def all_but_part(self, stage: str, time: Ints, which: Bools, but: Bools, values: Values) -> None:
        """A row of a queue process for each copy, without the part that has its fate where `but` says so."""
        copies = self.copies
        everything = np.where(but, copies.start, copies.size)
        first, second = copies.first, copies.first + copies.end
        ranges: Values = {
            "first": first,
            "end": np.where(which, first + everything, first),
            "second": second,
            "second_end": np.where(which & but, first + copies.size, second),
        }
        self._add(stage, QUEUE, time, {**ranges, **values})

    def pieces(
        self, stage: str, service: int, time: Ints, but: Bools, random: np.random.Generator, **values: Ints | int
    ) -> None:
        """A row or two for each copy, without the part that has its fate where `but` says so."""
        copies, count = self.copies, len(but)
        halves = random.random(count) < 0.5
        cut = np.where(halves, 1 + (random.random(count) * copies.size).astype(np.int64), copies.size)
        for low, high, delay in ((np.zeros(count, np.int64), cut, 0), (cut, copies.size, 250)):
            until = np.where(self.taken, np.where(but, np.minimum(high, copies.start), high), low)
            after = np.where(but, np.maximum(low, copies.end), high)
            ranges: Values = {
                "first": copies.first + low,
                "end": copies.first + until,
                "second": copies.first + after,
                "second_end": copies.first + np.where(self.taken, high, after),
            }
            self._add(stage, service, time + delay, {**ranges, **values})

    def _add(self, stage: str, service: int, time: Ints, values: Values) -> None:
        common: Values = {"gateway": self.copies.gateway, "queue": self.copies.queue, "time": time}
        epoch = 0 if service == GATEWAY else self.times.later_epoch
        self.rows.add(stage, service, {**common, "epoch": epoch, **values})
