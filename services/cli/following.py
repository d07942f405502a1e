"""What `hopline trace --follow` picks out of what the ledger is told: lines of a queue, of messages that fit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import repeat

from services.cli.ends import Ends, Known
from services.cli.letters import Letters
from services.common.errors import BrokerError
from services.common.ledger.reading import StageRow, rows_of
from services.common.ledger.stages import NAMES
from services.common.message import format_named
from services.common.patterns import fits
from services.common.question import OUTSIDE_QUEUES, Sought, has_fate
from services.rpc.ledger_pb2 import Connection, Identified, LedgerBatch

_REMEMBERED = 10_000  # ids of messages, some of which are told of later
_OF_PLACES = (
    "virtual_host", "exchange", "routing_key", "queue", "protocol", "connection", "client", "consumer", "attempt",
    "target",
)  # fmt: skip
_FITTING = 100_000  # messages that fit, for what is told of them later


@dataclass(frozen=True, slots=True)
class Line:
    """A batch of messages at a stage: what a `Step` of a trace says, under the same names, and of which messages."""

    time_us: int
    stage: str
    service: str
    instance: str
    virtual_host: str
    exchange: str
    routing_key: str
    queue: str
    partition: int | None
    epoch: int | None
    protocol: str
    connection: str
    client: str
    user: str  # as far as it was told since this began, as the next
    peer: str
    consumer: str
    attempt: int
    outcome: str
    reason: str
    target: str
    count: int
    bytes: int
    successors: list[int]  # of each message, in order; or none
    uids: list[tuple[int, int]]
    number: int  # of the row in the instance
    wait_us: None = None  # each message has one of its own


class Following:
    """Picks lines out of batches, and remembers which ids messages have, and which messages fit.

    The gateway tells a message's publisher and key when it is received, and its consumer when it is sent; the queue
    process tells what happens in its queue. So `fitting` is asked some time after `lines`.
    """

    def __init__(self, sought: Sought) -> None:
        """`sought.queue` is a pattern, as the rest; times do not matter."""
        self._sought = sought
        self._publishers = Ends(sought.virtual_host, sought.client)
        self._consumers = Ends(sought.virtual_host, sought.consumer)
        self._ids: OrderedDict[int, str] = OrderedDict()
        self._peers: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._published: OrderedDict[int, None] | None = OrderedDict() if sought.client or sought.key else None
        self._letters = Letters() if sought.client else None
        self._sent: OrderedDict[int, None] | None = OrderedDict() if sought.consumer else None
        self._heard: dict[str, int] = {}  # of each instance, the next row: rows come in order
        # What a message ends as outside any queue is told of the message: where it was to go was told before.
        self._routed: OrderedDict[int, None] | None = OrderedDict() if sought.fate in OUTSIDE_QUEUES else None

    @property
    def asks_for_ends(self) -> bool:
        """Whether users and addresses of connections matter."""
        return bool(self._sought.client or self._sought.consumer)

    async def ask(self, known: Known) -> None:
        """Learns users and addresses of connections that were told before; raises what `known` does."""
        await self._publishers.ask(known)
        await self._consumers.ask(known)

    def lines(self, payload: bytes) -> Iterator[Line]:
        """Those of a batch; raises DecodeError, IndexError or ValueError for what is none."""
        batch = LedgerBatch.FromString(payload)
        for connection in batch.connections:
            self._publishers.hear(connection)
            self._consumers.hear(connection)
            self._meet(connection)
        for identified in batch.identified:
            with suppress(BrokerError):  # names are a help, no more
                self._remember(identified)
        known = self._heard.get(batch.instance, 0)
        self._heard[batch.instance] = max(known, batch.first_row + len(batch.stages))
        for told in rows_of(batch):
            if batch.first_row + told.row < known:
                continue  # a process that the bus did not answer in time tells it again
            if told.place.virtual_host != self._sought.virtual_host:
                continue
            self._note(batch, told)
            if self._routed is not None or _fits(told.place.queue, self._sought.queue):
                yield self._line(batch, told)

    def fitting(self, line: Line) -> Line | None:
        """The line with those of its messages that fit, as far as is known by now."""
        if (fate := self._sought.fate) and not has_fate(fate, line.stage, line.outcome, line.reason):
            return None
        known = [uids for uids in (self._published, self._sent, self._routed) if uids is not None]
        if not known:
            return line
        each = list(_each(line))
        fit = [number for number, uid in enumerate(each) if all(self._is_in(uid, some) for some in known)]
        if not fit:
            return None
        successors = [line.successors[number] for number in fit] if line.successors else []
        uids = [(each[number], each[number]) for number in fit]
        return replace(line, uids=uids, count=len(uids), successors=successors)

    def _is_in(self, uid: int, some: OrderedDict[int, None]) -> bool:
        return uid in some or (some is self._published and self._letters is not None and uid in self._letters)

    def ids_of(self, line: Line) -> list[str]:
        """The ids of its messages, as far as they are known by now."""
        if not self._ids:
            return []
        return [self._ids[uid] for uid in _each(line) if uid in self._ids]

    def _note(self, batch: LedgerBatch, told: StageRow) -> None:
        row, place, uids = told
        stage = NAMES[batch.stages[row]] if batch.stages[row] < len(NAMES) else ""
        if self._published is not None and stage in {"received", "routed"}:
            by = self._publishers.fit(place.connection, place.client)
            if by and _fits(place.routing_key, self._sought.key):
                _keep(self._published, uids)
            if by and self._letters is not None:
                self._letters.publish(uids)
        if self._letters is not None:
            self._note_letter(self._letters, batch, told, stage)
        if self._routed is not None and stage == "routed" and _fits(place.queue, self._sought.queue):
            _keep(self._routed, uids)
        to = place.connection, place.client, place.consumer
        if self._sent is not None and stage == "sent" and self._consumers.fit(*to):
            _keep(self._sent, uids)

    def _note_letter(self, letters: Letters, batch: LedgerBatch, told: StageRow, stage: str) -> None:
        """Who published it is not told of a dead letter, which its queue process routes."""
        if stage in {"dead_lettered", "copied"}:
            letters.move(told.uids, _successors(batch, told))
        elif (stage, batch.service) == ("routed", "queue") and _fits(told.place.routing_key, self._sought.key):
            letters.route(told.uids)

    def _line(self, batch: LedgerBatch, told: StageRow) -> Line:
        row, place, uids = told
        user, peer = self._peers.get(place.connection, ("", ""))
        return Line(
            time_us=batch.times_us[row],
            stage=NAMES[batch.stages[row]] if batch.stages[row] < len(NAMES) else str(batch.stages[row]),
            service=batch.service,
            instance=batch.instance,
            **{name: getattr(place, name) for name in _OF_PLACES},
            partition=place.partition if place.partition >= 0 else None,
            epoch=place.epoch or None,
            user=user,
            peer=peer,
            outcome=batch.words[batch.outcome[row]],
            reason=batch.words[batch.reason[row]],
            count=sum(last - first + 1 for first, last in uids),
            bytes=_bytes(batch, row),
            successors=_successors(batch, told),
            uids=uids,
            number=batch.first_row + row,
        )

    def _meet(self, told: Connection) -> None:
        self._peers[told.connection] = told.user, told.peer
        while len(self._peers) > _REMEMBERED:
            self._peers.popitem(last=False)

    def _remember(self, identified: Identified) -> None:
        format_ = format_named(identified.format)
        properties = identified.properties
        each = repeat(properties[0]) if len(properties) == 1 else properties
        for uid, its in zip(identified.uids, each, strict=False):
            names = dict(format_.identities(its))
            if name := names.get("message_id") or names.get("correlation_id"):
                self._ids[uid] = name
        while len(self._ids) > _REMEMBERED:
            self._ids.popitem(last=False)


def _bytes(batch: LedgerBatch, row: int) -> int:
    """Of a row that became several it is not known which has how many."""
    several = any(mixture.row == batch.first_row + row for mixture in batch.mixtures)
    return 0 if several else batch.bytes[row]


def _successors(batch: LedgerBatch, told: StageRow) -> list[int]:
    """What its messages went on as, where they did, in their order."""
    firsts = [first for each in batch.successions if each.row == batch.first_row + told.row for first in each.firsts]
    if not firsts:
        return []
    begin = sum(batch.ranges[: told.row])
    its = slice(begin, begin + batch.ranges[told.row])
    pairs = zip(batch.firsts[its], batch.lengths[its], firsts, strict=True)
    follow = {first + number: to + number for first, length, to in pairs for number in range(length)}
    return [follow[uid] for first, last in told.uids for uid in range(first, last + 1)]


def _each(line: Line) -> Iterator[int]:
    return (uid for first, last in line.uids for uid in range(first, last + 1))


def _keep(kept: OrderedDict[int, None], uids: Iterable[tuple[int, int]]) -> None:
    for first, last in uids:
        kept.update(dict.fromkeys(range(first, last + 1)))
    while len(kept) > _FITTING:
        kept.popitem(last=False)


def _fits(value: str, pattern: str) -> bool:
    return not pattern or fits(value, pattern)
