"""Snapshots of the index, written beside the commits: a start reads the newest that is whole, and the log behind it.

Its pieces go into the stream between groups, and a mark behind the last of them. Then what it covers can be deleted:
the snapshot before it, and segments of the log without living contents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NoReturn

from services.common.clock import monotonic
from services.common.errors import InternalError
from services.rpc.store_log_pb2 import Mark, Piece
from services.rpc.store_log_pb2 import Segment as SegmentRow
from services.store.backup.wire import to_piece
from services.store.provider import Changes
from services.store.providers import jetstream_encoding as encoding
from services.store.providers.jetstream_index import Index
from services.store.providers.jetstream_load import MARK, SNAPSHOT, snapshot_subject
from services.store.providers.jetstream_writer import Writer
from services.store.snapshot import Row, Table, counted, pieces

_LOG_BYTES = 32 << 20  # of log that a start reads besides a snapshot, at most …
_GROUPS = 20_000  # … and groups
_SHARE = 8  # one part in so many of a stream with a limit: dead data is deleted only after a snapshot
_AGAIN_SECONDS = 30.0  # after a snapshot that could not be written
_TIMES = 1  # the log may be so many times as large as the last snapshot, if that is more
_PIECE_BYTES = 256 << 10
_COUNTERS = 32  # bytes of a mark that are added last


class Snapshots:
    """The snapshots of one writer."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._size = 0  # of the last one
        self._number = 0
        self._again_at = 0.0  # when to try again after one could not be written

    @property
    def due(self) -> bool:
        """Whether the log has grown so much that a start would take too long without another snapshot."""
        if self._again_at:
            return monotonic() > self._again_at
        loaded = self._writer.loaded
        if loaded.grown < self._size * _TIMES:
            return False
        room = self._writer.left.room
        most = min(_LOG_BYTES, room.total // _SHARE) if room else _LOG_BYTES
        return loaded.grown > most or loaded.groups > _GROUPS

    async def take(self) -> None:
        """Writes a snapshot. Raises InternalError; pieces that are there then do no harm."""
        mark, rows = await self._begin()
        self._size, self._again_at = 0, 0.0
        for body in messages(rows):
            if not self._writer.left.spares(len(body)):
                await self._give_up(mark)
            mark.upto = await self._writer.put(snapshot_subject(mark.snapshot), body)
            mark.pieces += 1
            self._size += len(body)
        await self._finish(mark)

    async def _give_up(self, mark: Mark) -> NoReturn:
        self._again_at = monotonic() + _AGAIN_SECONDS
        async with self._writer.turn() as link:
            # Or a successor's could have this number by now.
            await self._writer.fence(link, snapshot_subject(mark.snapshot))
            await link.purge(f"{link.prefix}.{snapshot_subject(mark.snapshot)}")
        raise InternalError("the stream has no room for a snapshot: give it more (max_bytes)")

    async def _begin(self) -> tuple[Mark, Iterator[Piece]]:
        """The index as it is now, and its place in the log; from here on the log has another segment.

        A message of its own is a fence: what is purged was there before it, so it is not a later writer's; and no
        message on its way comes behind it, which would be neither covered nor in the new segment.
        """
        async with self._writer.turn() as link:
            there = self._numbers(link.prefix, (await link.held(f"{link.prefix}.{SNAPSHOT}.>")).subjects)
            loaded = self._writer.loaded
            self._number = max(self._number, loaded.mark.snapshot, *there, 0) + 1
            await self._writer.fence(link, snapshot_subject(self._number))
            for number in there - {loaded.mark.snapshot}:  # snapshots that were never finished
                await link.purge(f"{link.prefix}.{snapshot_subject(number)}")
            return self._cut(encoding.room(link.largest)), of_index(loaded.index)

    @staticmethod
    def _numbers(prefix: str, subjects: Iterable[str]) -> set[int]:
        """Numbers of the snapshots with these subjects; similar subjects of others are left alone."""
        names = (name.removeprefix(f"{prefix}.{SNAPSHOT}.") for name in subjects)
        return {int(name) for name in names if name.isascii() and name.isdigit()}

    def _cut(self, most: int) -> Mark:
        """Begins a new segment; gives the mark. Raises InternalError if the mark does not fit into one message."""
        loaded = self._writer.loaded
        segments = [
            SegmentRow(number=each.number, first=each.first, bytes=each.bytes) for each in loaded.index.space.segments
        ]
        mark = Mark(
            snapshot=self._number, base=loaded.last, group=loaded.group, segment=loaded.segment + 1, segments=segments
        )
        if mark.ByteSize() + _COUNTERS > most:
            self._again_at = monotonic() + _AGAIN_SECONDS
            raise InternalError(
                f"the log has {len(segments)} segments, too many for a mark: let consumers empty queues"
            )
        loaded.segment += 1
        loaded.grown = loaded.groups = 0
        return mark

    async def _finish(self, mark: Mark) -> None:
        await self._writer.put(MARK, mark.SerializeToString())
        former, self._writer.loaded.mark = self._writer.loaded.mark, mark
        async with self._writer.turn() as link:
            if former.snapshot:
                await link.purge(f"{link.prefix}.{snapshot_subject(former.snapshot)}")
            await link.purge(f"{link.prefix}.{MARK}", keep=1)


def of_index(index: Index) -> Iterator[Piece]:
    """The pieces of the index as it is now, even if it changes meanwhile; counters come last."""
    tables, aged = index.tables(), index.aged()
    last = counted(*index.counters())
    return _pieces(tables, aged, last)


def _pieces(tables: list[Table], aged: list[tuple[str, Row, int]], last: Changes) -> Iterator[Piece]:
    for at, marks in groupby(aged, key=itemgetter(2)):
        rows: list[Table] = [(name, [row]) for name, row, _ in marks]
        yield from (Piece(rows=[to_piece(changes)]) for changes in pieces(at, rows))
    yield from (Piece(rows=[to_piece(changes)]) for changes in pieces(last.at, tables))
    yield Piece(rows=[to_piece(last)])


def messages(found: Iterator[Piece]) -> Iterator[bytes]:
    """The pieces in as few messages as possible, of `_PIECE_BYTES` at most unless a single piece is larger."""
    body = bytearray()
    for piece in found:
        one = piece.SerializeToString()
        if body and len(body) + len(one) > _PIECE_BYTES:
            yield bytes(body)
            body.clear()
        body += one  # protobuf reads repeated fields one behind the other as one
    yield bytes(body)
