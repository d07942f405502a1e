"""Copies a store as it is from one provider to another: no store serves it meanwhile, so the history is the same.

Leases, epochs and origins are kept: processes that live on, and their clients, go on with the new store as with one
that has restarted.
"""

from __future__ import annotations

from contextlib import aclosing

from services.common.errors import PreconditionFailed
from services.store.backup.wire import to_piece
from services.store.moving.into import Into, Moved, Pieces
from services.store.moving.mark import mark_in, unfinished
from services.store.moving.progress import Progress
from services.store.moving.site import Site
from services.store.provider import Provider


async def copy(source: Site, destination: Site, told: Progress) -> Moved:
    """Copies everything. Raises PreconditionFailed, InternalError or ResourceError."""
    if source == destination:
        raise PreconditionFailed(f"{source} cannot be copied to itself")
    async with source.source() as from_, destination.destination(source) as to:
        return await Into(to, str(source), told).run(pieces_of(from_))


async def pieces_of(provider: Provider) -> Pieces:
    """All data of a provider. Raises PreconditionFailed where that is no whole store."""
    if mark := mark_in(await provider.records()):
        raise PreconditionFailed(unfinished(mark))
    async with aclosing(provider.snapshot()) as pieces:
        async for changes in pieces:
            if changes:
                yield to_piece(changes)
