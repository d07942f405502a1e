"""Draws batches of messages as publishers send them, and the copies of them that queues get."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark.generate.plan import DEAD, ORDINARY_FATES, Fate, Plan, Publish

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

GATEWAYS = 2
SEQUENCE_BITS = 39
DEAD_LETTER_ORIGIN = 100
PARTITIONS = 64
_COPIES_OF_FAN_OUT = 3
_MOVES_EVERY = 5  # partition


@dataclass(frozen=True, slots=True)
class Batches:
    """Published together, by one publisher; element i of each array is batch i."""

    size: Ints
    first: Ints  # uid
    gateway: Ints
    queue: Ints
    received: Ints  # µs
    publish: Ints
    fate: Ints
    start: Ints  # of the messages that have `fate`, and
    end: Ints  # their end, as offsets
    durable: Bools
    fan_out: Bools


@dataclass(frozen=True, slots=True)
class Copies:
    """What queues get of batches."""

    batch: Ints
    size: Ints
    first: Ints
    gateway: Ints
    queue: Ints
    routed: Ints  # µs
    fate: Ints
    start: Ints
    end: Ints
    durable: Bools
    successor: Ints  # uid: the first that those with a fate of DEAD_… go on as; else 0


def draw(plan: Plan, random: np.random.Generator, planted: Ints, clock: int, next_uids: Ints, moves_at: int) -> Batches:
    """As many batches as `planted` has elements: 0, or the Fate that some messages of a batch must have.

    `next_uids` has the next sequence number of each gateway, and is moved on.
    """
    count = len(planted)
    size = random.geometric(1 / plan.batch, count) if plan.batch > 1 else np.ones(count, np.int64)
    queue = random.integers(0, plan.queues, count)
    queue[random.random(count) < plan.skew] = 0
    gateway = random.integers(0, GATEWAYS, count)
    received = clock + (np.cumsum(size) * (1e6 / plan.rate)).astype(np.int64)
    unusual = random.random(count) < plan.unusual
    publish = np.where(unusual & (random.random(count) < 0.3), random.integers(1, len(Publish), count), 0)
    fate = np.where(unusual & (publish <= Publish.UNCONFIRMED), random.choice(ORDINARY_FATES, count), 0)
    fate = np.where(planted > 0, planted, fate)
    publish = np.where(planted > 0, 0, publish)
    lost_in_move = (fate == Fate.NEVER_ENQUEUED) & moving(queue) & (received < moves_at) & (size > 1)
    fate[lost_in_move] = Fate.NOT_RECOVERED
    start, end = _part(random, size, fate)
    return Batches(
        size, _uids(size, gateway, next_uids), gateway, queue, received, publish, fate, start, end,
        random.random(count) < 0.7, (random.random(count) < plan.fan_out) & (publish <= Publish.UNCONFIRMED),
    )  # fmt: skip


def moving(queue: Ints) -> Bools:
    """Whether the queue's partition gets another owner."""
    moves: Bools = partition(queue) % _MOVES_EVERY == 2
    return moves


def partition(queue: Ints) -> Ints:
    """Where a queue lives."""
    return queue % PARTITIONS


def copies(batches: Batches, queues: int, next_successor: Ints) -> Copies:
    """What queues get of batches that are routed; the fate of a batch befalls only the copy in its first queue.

    `next_successor` has the next sequence number of dead letters, and is moved on.
    """
    routed = np.flatnonzero(np.isin(batches.publish, (Publish.CONFIRMED, Publish.UNCONFIRMED, Publish.REFUSED)))
    fans_out = batches.fan_out & (queues >= _COPIES_OF_FAN_OUT)
    which = np.concatenate([routed, np.repeat(np.flatnonzero(fans_out), _COPIES_OF_FAN_OUT - 1)])
    position = np.arange(len(which)) - len(routed)
    is_other = position >= 0
    further = np.where(is_other, 1 + position % (_COPIES_OF_FAN_OUT - 1), 0)
    size = batches.size[which]
    fate = np.where(is_other, 0, batches.fate[which])
    start, end = (np.where(is_other, size, part[which]) for part in (batches.start, batches.end))
    return Copies(
        which, size, batches.first[which], batches.gateway[which], (batches.queue[which] + further) % queues,
        batches.received[which] + 60, fate, start, end, batches.durable[which],
        _successors(fate, end - start, next_successor),
    )  # fmt: skip


def dead_letters(origin: Copies, settled: Ints, queue: int) -> Copies:
    """What dead letters of `origin` go on as, in one queue; every other batch of them stays there, waiting."""
    which = np.flatnonzero(origin.successor)
    size = (origin.end - origin.start)[which]
    waiting = np.arange(len(which)) % 2 == 1
    nothing = np.zeros(len(which), np.int64)
    return Copies(
        origin.batch[which], size, origin.successor[which], origin.gateway[which], nothing + queue,
        settled[which] + 400, np.where(waiting, Fate.WAITING, Fate.SETTLED), np.where(waiting, 0, size), size,
        origin.durable[which], nothing,
    )  # fmt: skip


def _successors(fate: Ints, size: Ints, next_successor: Ints) -> Ints:
    dead = np.isin(fate, DEAD)
    ends = np.cumsum(np.where(dead, size, 0))
    first = np.where(dead, (DEAD_LETTER_ORIGIN << SEQUENCE_BITS) + next_successor[0] + ends - size, 0)
    next_successor[0] += ends[-1] if len(ends) else 0
    return first


def _part(random: np.random.Generator, size: Ints, fate: Ints) -> tuple[Ints, Ints]:
    """The part of each batch that has its fate: at least one message; of SETTLED ones none, for all have."""
    # Some of a batch that loses messages in a move are found by the new owner: that is how the move is known.
    least = (fate == Fate.NOT_RECOVERED).astype(np.int64)
    start = least + (random.random(len(size)) * (size - least)).astype(np.int64)
    end = start + 1 + (random.random(len(size)) * (size - start)).astype(np.int64)
    plain = fate == Fate.SETTLED
    return np.where(plain, size, start), np.where(plain, size, np.minimum(end, size))


def _uids(size: Ints, gateway: Ints, next_uids: Ints) -> Ints:
    first = np.empty(len(size), np.int64)
    for number in range(len(next_uids)):
        mine = gateway == number
        ends = np.cumsum(size[mine])
        first[mine] = (number + 1 << SEQUENCE_BITS) + next_uids[number] + ends - size[mine]
        next_uids[number] += ends[-1] if len(ends) else 0
    return first
