"""A snapshot of all data at one moment, with the columns of contents, as Provider says."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from services.common.errors import InternalError
from services.store.provider import Changes
from services.store.providers.jetstream_bodies import Bodies
from services.store.providers.jetstream_encoding import ContentPosition
from services.store.providers.jetstream_index import Index
from services.store.snapshot import Pieces, Row, Table, counted


async def copy(index: Index, bodies: Bodies) -> AsyncGenerator[Changes, None]:
    """The pieces. Contents that die meanwhile stay in the stream until the pieces are read."""
    index.space.pins += 1
    try:
        counters, tables = index.counters(), index.everything()
        yield Changes()
        pieces = Pieces(counters[0])
        async with aclosing(_rows(tables, bodies)) as rows:
            async for name, row in rows:
                if full := pieces.put(name, row):
                    yield full
        if rest := pieces.rest():
            yield rest
        yield counted(*counters)
    finally:
        index.space.pins -= 1


async def _rows(tables: list[Table], bodies: Bodies) -> AsyncGenerator[tuple[str, Row], None]:
    for name, rows in tables:
        for row in rows:
            yield name, await _content(row, bodies) if name == "contents" else row


async def _content(row: Row, bodies: Bodies) -> Row:
    number, packed, whole = row
    columns = await bodies.at(ContentPosition.unpack(packed))
    if columns is None:
        raise InternalError(f"the stream has lost the content {number}")
    return number, columns, whole
