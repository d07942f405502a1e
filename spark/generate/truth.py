"""What truly became of the messages of a generated ledger."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from spark.generate.batches import Batches, Copies, Ints
from spark.generate.plan import DUPLICATES, Fate, Publish


class Account(NamedTuple):
    """What messages have in common that met the same end in the same queue."""

    virtual_host: str
    queue: str  # "" for messages that got into none
    origin: str  # confirmed, unconfirmed, refused, rolled_back, dead_letter
    fate: str
    reason: str
    duplicate: str


class Planted(NamedTuple):
    """Messages with something wrong that an audit has to find."""

    virtual_host: str
    queue: str
    first_uid: int
    last_uid: int
    what: str


@dataclass(slots=True)
class Truth:
    """Grows while a ledger is generated."""

    rows: int = 0
    messages: Counter[Account] = field(default_factory=Counter)
    planted: list[Planted] = field(default_factory=list)
    gaps: int = 0


_SAID = {
    Fate.WAITING: ("waiting", ""),
    Fate.UNSETTLED: ("unsettled", ""),
    Fate.EXPIRED: ("expired", "message_ttl"),
    Fate.DEAD_EXPIRED: ("dead_lettered", "expired"),
    Fate.DEAD_REJECTED: ("dead_lettered", "rejected"),
    Fate.DEAD_MAXLEN: ("dead_lettered", "maxlen"),
    Fate.DROPPED: ("dropped", "maxlen"),
    Fate.REJECTED: ("dropped", "rejected"),
    Fate.NEVER_ENQUEUED: ("lost", "never_enqueued"),
    Fate.NOT_RECOVERED: ("lost (transient)", "not_recovered"),
}
_SAID_IF_DURABLE = {Fate.NOT_RECOVERED: ("lost (persisted)", "not_recovered")}
_WHOLE = {
    Publish.RETURNED: ("confirmed", "returned", "no_route"),
    Publish.UNROUTABLE: ("confirmed", "dropped", "unroutable"),
    Publish.ROLLED_BACK: ("rolled_back", "rolled_back", ""),
}


def account_for_batches(truth: Truth, batches: Batches, virtual_host: str) -> None:
    """Adds what got into no queue."""
    for publish, (origin, fate, reason) in _WHOLE.items():
        messages = int(batches.size[batches.publish == publish].sum())
        truth.messages[Account(virtual_host, "", origin, fate, reason, "")] += messages


def account_for_copies(truth: Truth, copies: Copies, publish: Ints | None, names: list[tuple[str, str]]) -> None:
    """Adds what queues got; `publish` as in Batches, None for dead letters."""
    part = copies.end - copies.start
    refused = np.zeros(len(part), np.bool_) if publish is None else publish == Publish.REFUSED
    origins = np.full(len(part), 2) if publish is None else publish.clip(0, 1)
    for origin, called in enumerate(("confirmed", "unconfirmed", "dead_letter")):
        of_it = (origins == origin) & ~refused
        _count(truth, copies, np.where(of_it, copies.size - part, 0), (called, "settled", "", ""), names)
        for fate in Fate:
            sizes = np.where(of_it & (copies.fate == fate), part, 0)
            duplicate = fate.name.lower() if fate in DUPLICATES else ""
            for durable, said in ((False, _SAID), (True, _SAID | _SAID_IF_DURABLE)):
                of_kind = np.where(copies.durable == durable, sizes, 0)
                _count(truth, copies, of_kind, (called, *said.get(fate, ("settled", "")), duplicate), names)
    _count(truth, copies, np.where(refused, copies.size, 0), ("refused", "refused", "overflow", ""), names)
    _list(truth, copies, names)


def _count(
    truth: Truth, copies: Copies, sizes: Ints, account: tuple[str, str, str, str], names: list[tuple[str, str]]
) -> None:
    by_queue = np.bincount(copies.queue, weights=sizes, minlength=len(names))
    for queue in np.flatnonzero(by_queue):
        truth.messages[Account(*names[queue], *account)] += int(by_queue[queue])


def _list(truth: Truth, copies: Copies, names: list[tuple[str, str]]) -> None:
    for fate in (Fate.NEVER_ENQUEUED, Fate.NOT_RECOVERED, *DUPLICATES):
        for one in np.flatnonzero(copies.fate == fate):
            host, queue = names[copies.queue[one]]
            first, last = copies.first[one] + copies.start[one], copies.first[one] + copies.end[one] - 1
            truth.planted.append(Planted(host, queue, int(first), int(last), fate.name.lower()))
