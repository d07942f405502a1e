"""What a writer knows of its stream: everything up to one message. It reads to find out what came behind that.

A writer that finds something there that must not be stops writing for good, and says why.
"""

from __future__ import annotations

from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import NoReturn

from services.common.errors import InternalError
from services.store.provider import Changes
from services.store.providers import jetstream_encoding as encoding
from services.store.providers.jetstream_encoding import Part
from services.store.providers.jetstream_link import Behind, Damaged, JetStreamLink, Lost, Message, NotThere
from services.store.providers.jetstream_load import Loaded, part_of
from services.store.providers.jetstream_space import Left
from services.store.providers.standing import Standing

_LOOK_SECONDS = 1.0


@dataclass(slots=True)
class Sent:
    """A group that is being written; `there` when it was found in the stream, though no answer came."""

    changes: Changes
    body: bytes
    there: bool = False

    @classmethod
    def of(cls, changes: Changes) -> Sent:
        return cls(changes, encoding.encode(changes))


class Known:
    """What the writer `me` knows of a stream; `shown` is the stream's name for people, `standing` is told of an end."""

    def __init__(self, shown: str, me: int, standing: Standing) -> None:
        self._shown = shown
        self._me = me
        self._standing = standing
        self.loaded = Loaded()
        self.left = Left()
        self.owns = False  # whether the last known message is this writer's
        self.doubt = False  # whether there may be more in the stream than is known
        self.sent: Sent | None = None  # a group of the store, while its outcome is unknown
        self.moving: Sent | None = None  # the same, for a group that the provider writes to move contents

    # ------------------------------------------------------------------ what is written

    async def append_group(self, link: JetStreamLink, body: bytes, changes: Changes) -> None:
        """Appends the next group. Raises Behind where there is more in the stream than is known."""
        number, cut = self.loaded.group + 1, encoding.room(link.largest)
        parts = encoding.parts(self._me, number, body, cut)
        first = await self._append(link, self.loaded.subject, parts)
        self.loaded.wrote(first, [len(part.body) for part in parts])
        await self.loaded.apply(number, encoding.places(changes, body, first, cut))

    async def put(self, link: JetStreamLink, subject: str, body: bytes) -> int:
        """Appends a message that is no group; gives the sequence of its last part."""
        parts = encoding.parts(self._me, self.loaded.group, body, encoding.room(link.largest))
        try:
            await self._append(link, subject, parts)
        except Behind:
            raise Lost("a message of before came in between", passing=True) from None
        return self.loaded.last

    async def _append(self, link: JetStreamLink, subject: str, parts: list[Part]) -> int:
        self.doubt = True
        payloads = [part.encode() for part in parts]
        first = await link.append(f"{link.prefix}.{subject}", self.loaded.last, payloads)
        self.left.wrote(payloads)
        self.doubt = False
        self.loaded.last = first + len(payloads) - 1
        return first

    # ------------------------------------------------------------------ what is found

    async def look(self, link: JetStreamLink) -> None:
        """Reads new messages, if there are any."""
        if await self._there(link) != self.loaded.last:
            await self.catch_up(link)

    async def catch_up(self, link: JetStreamLink) -> None:
        """Reads the messages behind the last known one."""
        there = await self._there(link)
        if there < self.loaded.last:
            await self._end(
                link,
                f"{self._shown} has lost what it had confirmed: its last message is {there}, and {self.loaded.last} "
                "was written; was it restored, or are its servers' disks gone?",
            )
        async with aclosing(link.scan(f"{link.prefix}.>", self.loaded.last + 1, there)) as messages:
            async for message in messages:
                await self._take(link, message)
        if self.loaded.last < there:
            raise self._gap()
        self.doubt = False

    async def _there(self, link: JetStreamLink) -> int:
        try:
            held = await link.held()
        except NotThere:
            raise Damaged("the stream is not there any more: was it deleted? Restore a backup") from None
        self.left.told(held.bytes, held.most)
        return held.last

    def _gap(self) -> Damaged:
        """The error for a missing message; everything that was confirmed is before it."""
        missing = self.loaded.last + 1
        return Damaged(f"message {missing} is not there any more: was it deleted? Start the store again without it")

    async def _take(self, link: JetStreamLink, message: Message) -> None:
        part = await self._part(link, message)
        if message.sequence != self.loaded.last + 1:
            raise self._gap()
        self.owns = part.writer == self._me
        try:
            found = await self.loaded.take(link, message, part)
        except InternalError as wrong:
            await self._end(link, wrong.text)
        self.loaded.last = message.sequence
        for sent in (self.sent, self.moving):
            if found and sent and sent.body == found.body:
                sent.there = True

    async def _part(self, link: JetStreamLink, message: Message) -> Part:
        try:
            part = part_of(message)
        except InternalError as wrong:
            await self._end(link, wrong.text)
        if self.owns and part.writer != self._me:
            await self._overtaken(link)
        return part

    async def _overtaken(self, link: JetStreamLink) -> NoReturn:
        await _hush(link)  # or its own answer would come
        who = await link.writer(_LOOK_SECONDS) or "one that does not answer"
        self._standing.end(f"another store process ({who}) has begun to write to {self._shown}: stop it, or this one")

    async def _end(self, link: JetStreamLink, why: str) -> NoReturn:
        await _hush(link)
        self._standing.end(why)


async def _hush(link: JetStreamLink) -> None:
    """Stops answering as the writer, so that others learn that none writes. They do, too, if the connection is gone."""
    with suppress(Lost):
        await link.hush()
