"""One provider's store becomes another's, as it is: nobody is served meanwhile, so it is the same history.

Leases, epochs and origins are kept: processes that live on, and clients with them, go on with the new store as with
one that has started again.
"""

from __future__ import annotations

from contextlib import aclosing

from services.common.errors import PreconditionFailed
from services.store.backup.wire import to_piece
from services.store.moving.into import Into, Moved, Pieces
from services.store.moving.mark import mark_in, unfinished
from services.store.moving.site import Site
from services.store.moving.told import Told
from services.store.provider import Provider


async def copy(source: Site, destination: Site, told: Told) -> Moved:
    """Raises PreconditionFailed, InternalError or ResourceError."""
    if source == destination:
        raise PreconditionFailed(f"{source} cannot be copied to itself")
    async with source.source() as from_, destination.destination() as to:
        return await Into(to, str(source), told).run(pieces_of(from_))


async def pieces_of(provider: Provider) -> Pieces:
    """All that there is. Raises PreconditionFailed where that is no whole store."""
    if mark := mark_in(await provider.records()):
        raise PreconditionFailed(unfinished(mark))
    async with aclosing(provider.snapshot()) as pieces:
        async for changes in pieces:
            yield to_piece(changes)
