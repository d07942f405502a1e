"""Commit groups for a provider that may be away, and what the stream has of them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

from services.store.provider import Changes, EntryRow
from services.store.providers.jetstream import JetStreamProvider
from services.store.providers.jetstream_encoding import Part
from services.store.providers.jetstream_link import Link, Message
from services.store.providers.jetstream_standing import Away
from services.store.providers.jetstream_url import parse


def group(number: int, size: int = 7) -> Changes:
    """A batch, as a publisher's, with a content of so many bytes."""
    entry = EntryRow(number, 1, number, 1, b"entries")
    columns = str(number).encode().ljust(size, b".")
    return Changes(contents={number: columns}, entries={number: entry}, writers={7: number})


def dead(*numbers: int) -> Changes:
    """What was in such groups goes."""
    return Changes(dead_batches=list(numbers), dead_contents=list(numbers))


async def commit(provider: JetStreamProvider, changes: Changes) -> int:
    """As the committer does: the same again until it is there. Gives how often that was not at once."""
    failures = 0
    while True:
        try:
            await provider.commit(changes)
        except Away:
            failures += 1
            await asyncio.sleep(0.02)
        else:
            return failures


async def alive(provider: JetStreamProvider) -> dict[int, bytes]:
    """Batch → columns of its content."""
    return {batch.entry.id: batch.columns async for batch in provider.batches(1)}


async def reopened(url: str) -> JetStreamProvider:
    """Another one, which has read all that there is."""
    provider = JetStreamProvider(Path(), url)
    await provider.open()
    return provider


async def messages(url: str, subject: str = ">") -> list[tuple[Message, Part]]:
    """All that the stream has."""
    link = await Link.connect(parse(url))
    last = await link.last(f"{link.prefix}.{subject}")
    found = []
    if last:
        async with aclosing(link.scan(f"{link.prefix}.{subject}", 1, last.sequence)) as there:
            found = [(message, Part.decode(message.payload)) async for message in there]
    await link.close()
    return found


async def tear(url: str, part: Part, segment: int = 1) -> None:
    """Appends to the log, as a writer that ends then."""
    link = await Link.connect(parse(url))
    last = (await link.held()).last
    await link.append(f"{link.prefix}.log.{segment}", last, [part.encode()])
    await link.close()
