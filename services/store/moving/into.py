"""Writes pieces into an empty provider: one commit each; only after a check at the end may a store start on it.

The first commit says that it is not whole, and each also writes how many pieces are there. Done again with the same
pieces it continues behind them; a checksum over all pieces that are there tells whether they are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from dataclasses import dataclass

from services.common.errors import BrokerError, InternalError, PreconditionFailed, ResourceError
from services.rpc.store_pb2 import BackupPiece
from services.store.backup.wire import from_piece, to_piece
from services.store.moving.mark import KEY, KIND, Mark, mark_in
from services.store.moving.progress import Progress
from services.store.moving.tally import Tally
from services.store.provider import Changes, Provider

Pieces = AsyncGenerator[BackupPiece, None]


@dataclass(frozen=True, slots=True)
class Moved:
    """What is in the destination now; `resumed` pieces of it were there before."""

    messages: int
    queues: int
    records: int
    resumed: int

    def __str__(self) -> str:
        again = f", after {self.resumed} pieces that were there already" if self.resumed else ""
        return f"{self.messages} messages in {self.queues} queues, {self.records} records: checked{again}"


class Into:
    """Writes into one destination, which is open."""

    def __init__(self, provider: Provider, source: str, told: Progress) -> None:
        self._provider = provider
        self._source = source
        self._told = told
        self._chain = hashlib.sha256()
        self._number = 0
        self._new = False  # no mark yet
        self._tally = Tally()

    async def run(self, pieces: Pieces, last: Changes | None = None) -> Moved:
        """Raises PreconditionFailed, InternalError or ResourceError.

        `last` is committed in place of the counters in the pieces. After a failure a second run continues where the
        first one stopped, unless the destination has another store.
        """
        with closing(self._tally):
            before = await self._begun()
            try:
                counted = await self._write(pieces, before)
                await self._check(leases=last is None)
                await self._finish(last or counted)
            except BrokerError:
                raise
            except Exception as failure:
                raise ResourceError(f"cannot write: {failure}; done again it goes on from there") from failure
            return self._moved(before)

    async def _begun(self) -> Mark:
        mark = mark_in(await self._provider.records())
        if mark is None:
            await self._insist_on_nothing()
            self._new = True
            return Mark(source=self._source)
        if mark.source != self._source:
            raise PreconditionFailed(f"it has a part of {mark.source}, and not of {self._source}: empty it, or go on")
        return mark

    async def _insist_on_nothing(self) -> None:
        async with aclosing(self._provider.snapshot()) as pieces:
            async for changes in pieces:
                if changes:
                    raise PreconditionFailed("there is a store already: nothing was written; empty it, or take another")

    async def _write(self, pieces: Pieces, before: Mark) -> Changes:
        """Writes the pieces; gives the counters in them."""
        counted = Changes()
        self._told.phase("moving")
        async with aclosing(pieces):
            async for piece in pieces:
                self._note(piece)
                changes = from_piece(piece)
                if changes.origin or changes.incarnation:
                    counted = _only_counters(changes)
                if self._number > before.pieces:
                    await self._commit(changes)
                elif self._number == before.pieces and self._chain.hexdigest() != before.chain:
                    raise PreconditionFailed(f"{self._source} has changed since this was begun: empty what it goes to")
        if self._number < before.pieces:
            raise PreconditionFailed(f"{self._source} has less than it had when this was begun: empty what it goes to")
        if not counted:
            raise PreconditionFailed(f"there is no store in {self._source}")
        return counted

    def _note(self, piece: BackupPiece) -> None:
        body = piece.SerializeToString(deterministic=True)
        self._number += 1
        self._chain.update(body)
        self._tally.add(piece)
        self._told.step(len(body))

    async def _commit(self, changes: Changes) -> None:
        """With the mark. It is there before the first piece, which may be two commits, in two places."""
        if self._new:
            await self._provider.commit(Changes(records={(KIND, KEY): Mark(source=self._source).row()}))
            self._new = False
        changes.origin = changes.incarnation = changes.running = 0
        mark = Mark(source=self._source, pieces=self._number, chain=self._chain.hexdigest())
        changes.records[KIND, KEY] = mark.row()
        await self._provider.commit(changes)

    async def _check(self, *, leases: bool) -> None:
        """Reads everything back, and checks that it is what was to be written; `leases`: these too.

        Those of a last commit may be there already, where one of two places had taken it.
        """
        self._told.phase("checking")
        with closing(Tally()) as found:
            async with aclosing(self._provider.snapshot()) as pieces:
                async for changes in pieces:
                    piece = to_piece(changes)
                    if not leases:
                        piece.ClearField("leases")
                    found.add(piece)
                    self._told.step(piece.ByteSize())
            if wrong := self._tally.differences(found):
                raise InternalError(f"what was written is not what {self._source} has: {'; '.join(wrong[:3])}")

    async def _finish(self, last: Changes) -> None:
        last.records[KIND, KEY] = None
        await self._provider.commit(last)

    def _moved(self, before: Mark) -> Moved:
        queues = self._tally.queues()
        messages = sum(queue.messages for queue in queues.values())
        return Moved(messages, len(queues), self._tally.kinds["records"].rows, before.pieces)


def _only_counters(changes: Changes) -> Changes:
    return Changes(at=changes.at, origin=changes.origin, running=changes.running, incarnation=changes.incarnation)
