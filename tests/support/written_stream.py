"""What a stream has of the groups that were written to it."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

from services.store.providers.jetstream import JetStreamProvider
from services.store.providers.jetstream_encoding import Part
from services.store.providers.jetstream_link import JetStreamLink, Message
from services.store.providers.jetstream_url import parse


async def reopened(url: str) -> JetStreamProvider:
    """Another one, which has read all that there is."""
    provider = JetStreamProvider(Path(), url)
    await provider.open()
    return provider


async def messages(url: str, subject: str = ">") -> list[tuple[Message, Part]]:
    """All that the stream has."""
    link = await JetStreamLink.connect(parse(url))
    last = await link.last(f"{link.prefix}.{subject}")
    found = []
    if last:
        async with aclosing(link.scan(f"{link.prefix}.{subject}", 1, last.sequence)) as there:
            found = [(message, Part.decode(message.payload)) async for message in there]
    await link.close()
    return found


async def tear(url: str, part: Part, segment: int = 1) -> None:
    """Appends to the log, as a writer that ends then."""
    link = await JetStreamLink.connect(parse(url))
    last = (await link.held()).last
    await link.append(f"{link.prefix}.log.{segment}", last, [part.encode()])
    await link.close()
