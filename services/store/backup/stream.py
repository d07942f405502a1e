"""The backup of a running store: a head, then all data that is on disk at one moment."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from services.common.clock import epoch_ms
from services.common.restored import RECORD_KIND, read
from services.rpc.store_pb2 import BackupHead, BackupPiece
from services.store.backup.wire import to_piece
from services.store.provider import Provider
from services.store.records import Records


async def backup(provider: Provider, records: Records) -> AsyncGenerator[BackupPiece, None]:
    """The pieces of a backup. Commits go on meanwhile; a caller that does not want the rest closes it."""
    restored = read(record for message in records.snapshot([RECORD_KIND]) for record in message.records)
    # The time is taken before the snapshot: all that was confirmed by then is in it.
    yield BackupPiece(head=BackupHead(time_ms=epoch_ms(), generation=restored.generation if restored else 1))
    async with aclosing(provider.snapshot()) as pieces:
        async for changes in pieces:
            if changes:
                yield to_piece(changes)
