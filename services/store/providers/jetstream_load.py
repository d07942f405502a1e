"""Reads all data at a start: the newest snapshot that is whole, and the log behind it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from services.common.errors import InternalError
from services.rpc.store_log_pb2 import Mark, Piece
from services.store.backup.wire import from_piece
from services.store.provider import Changes
from services.store.providers.jetstream_encoding import Part, decode
from services.store.providers.jetstream_index import Index
from services.store.providers.jetstream_link import Damaged, JetStreamLink, Lost, Message
from services.store.providers.jetstream_replay import Found, Replay
from services.store.providers.jetstream_space import Segment

MARK = "mark"
WRITER = "writer"
_LOG = "log"
SNAPSHOT = "snapshot"
_RESTORE = "were messages deleted? Restore a backup into another stream"


def snapshot_subject(number: int) -> str:
    """The subject of a snapshot's pieces."""
    return f"{SNAPSHOT}.{number}"


def log_subject(segment: int) -> str:
    """The subject of a segment's messages."""
    return f"{_LOG}.{segment}"


def part_of(message: Message) -> Part:
    """The part in a message. Raises InternalError where it is none of a store's, which says what to do."""
    try:
        return Part.decode(message.payload)
    except InternalError as wrong:
        raise InternalError(
            f"{wrong.text}: {message.sequence}, on {message.subject}. Where it is not of a later release, let nobody "
            "else write to such subjects, delete it (nats stream rmm), and start the store again"
        ) from wrong


@dataclass(slots=True)
class Loaded:
    """All committed data, and how far the log has come."""

    index: Index = field(default_factory=Index)
    mark: Mark = field(default_factory=Mark)  # of the last snapshot
    last: int = 0  # sequence in the stream
    group: int = 0  # number of the last group
    segment: int = 1  # the one that is written to
    grown: int = 0  # bytes of the log since the last snapshot began …
    groups: int = 0  # … and groups
    _replay: Replay = field(default_factory=Replay)

    @property
    def subject(self) -> str:
        """The subject of messages that are appended to the log."""
        return log_subject(self.segment)

    def wrote(self, first: int, sizes: Sequence[int]) -> None:
        """Counts parts of a group that are in the stream, from the sequence `first` on."""
        self.index.space.wrote(self.segment, first, sum(sizes))
        self.grown += sum(sizes)

    async def take(self, link: JetStreamLink, message: Message, part: Part) -> Found | None:
        """Takes the next message of the stream; gives a group that it completes. Raises Lost where one is missing."""
        kind, _, number = message.subject.removeprefix(f"{link.prefix}.").partition(".")
        if kind == MARK:  # the answer to it was lost, or the former writer has written it meanwhile
            self.mark = Mark.FromString(part.body)
        if kind != _LOG:
            return None
        self.segment = int(number)
        self.wrote(message.sequence, [len(part.body)])
        if found := self._replay.take(message.sequence, part):
            await self.apply(found.number, decode(found.body, found.sequence, found.cut))
        return found

    async def apply(self, number: int, changes: Changes) -> None:
        """Applies the group `number`, whose contents are packed Places; raises Damaged where it is not the next one."""
        if number != self.group + 1:
            raise Damaged(f"group {self.group + 1} is not there, {number} is: {_RESTORE}")
        await self.index.commit(changes)
        self.group = number
        self.groups += 1


async def load(link: JetStreamLink) -> Loaded:
    """Reads everything. Raises Lost, also where the stream changes meanwhile so that it has to begin again."""
    loaded = Loaded(last=(await link.held()).last)
    mark = await link.last(f"{link.prefix}.{MARK}")
    if mark:
        loaded.mark = Mark.FromString(part_of(mark).body)
        await _read_snapshot(link, loaded)
    if (newest := await link.last(f"{link.prefix}.{_LOG}.>")) and newest.sequence > loaded.mark.base:
        await _read_log(link, loaded, newest.sequence)
        loaded.last = max(loaded.last, newest.sequence)
    await _check_end(link, loaded)
    if await link.last(f"{link.prefix}.{MARK}") != mark:  # what that covers may be deleted by now
        raise Lost("the former writer has made another snapshot meanwhile", passing=True)
    return loaded


async def _check_end(link: JetStreamLink, loaded: Loaded) -> None:
    """Checks against the last writer's first message, which has the number of the last group at that time."""
    writer = await link.last(f"{link.prefix}.{WRITER}")
    if loaded.last and not loaded.group and not writer:
        raise Lost("the stream had a store, and has none any more: were its messages deleted?")
    if writer and (number := part_of(writer).number) > loaded.group:
        raise Damaged(f"the log ends with group {loaded.group}, and group {number} was there: {_RESTORE}")


async def _read_snapshot(link: JetStreamLink, loaded: Loaded) -> None:
    mark, pieces, replay = loaded.mark, 0, Replay()
    loaded.group, loaded.segment = mark.group, mark.segment
    loaded.index.space.segments = [Segment(each.number, each.first, each.bytes) for each in mark.segments]
    subject = f"{link.prefix}.{snapshot_subject(mark.snapshot)}"
    async with aclosing(link.scan(subject, mark.base + 1, mark.upto)) as messages:
        async for message in messages:
            if found := replay.take(message.sequence, part_of(message)):
                pieces += 1
                for rows in Piece.FromString(found.body).rows:
                    await loaded.index.commit(from_piece(rows))
    if pieces != mark.pieces:
        raise Damaged(f"snapshot {mark.snapshot} is not whole any more: {_RESTORE}")


async def _read_log(link: JetStreamLink, loaded: Loaded, until: int) -> None:
    async with aclosing(link.scan(f"{link.prefix}.{_LOG}.>", loaded.mark.base + 1, until)) as messages:
        async for message in messages:
            await loaded.take(link, message, part_of(message))
