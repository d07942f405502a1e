"""The one who appends to the log: one group after the other, none of them twice, and one process at a time.

Each message names the sequence of the one before it, and the stream takes it only where that is its last. So whoever
has not seen all that is there writes nothing: another process, once this one has written, and this one, while a message
of its own is on its way of which it does not know. No clock decides that, and no lease.

An answer that was lost is asked for, by reading what came behind the last group that is known: the group is there, or
in part, or not at all; in the latter cases it is written, behind that. If it comes late, it is the one or the other
that names the wrong sequence.

Who starts becomes the writer by a message that names only that of the last who did: it shuts out whoever writes, all
that was written is before it, and of two that start at once one does. It asks first who writes, and begins when nobody
answers (`jetstream_lookout.py`).
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass

from services.common.clock import epoch_ms, monotonic
from services.common.errors import InternalError
from services.common.restored import utc
from services.common.runtime import Tasks
from services.store.provider import Changes, Occupied
from services.store.providers import jetstream_encoding as encoding
from services.store.providers.jetstream_encoding import Part
from services.store.providers.jetstream_index import Index
from services.store.providers.jetstream_link import Behind, Link, Lost, Message
from services.store.providers.jetstream_load import WRITER, Loaded, load
from services.store.providers.jetstream_url import Url
from services.store.providers.standing import Standing
from services.store.providers.standstill import Standstill

_LOOK_SECONDS = 1.0
_PING_SECONDS = 5.0
_PREDECESSOR_SECONDS = 15.0
_STARTING_SECONDS = 60.0  # for servers that are there, and do not serve yet
_POLL_SECONDS = 0.25
_ATTEMPTS = 3
_MEND = "start NATS, or mend the way to it; the store goes on by itself"


@dataclass(slots=True)
class _Sent:
    """A group as it is written; `there` when it was found, though no answer came."""

    changes: Changes
    body: bytes
    there: bool = False

    @classmethod
    def of(cls, changes: Changes) -> _Sent:
        return cls(changes, encoding.encode(changes))


class Writer:
    """Of the stream at `url`; `open` before anything else."""

    def __init__(self, url: Url) -> None:
        self._url = url
        self._id = secrets.randbits(63)
        self._who = f"process {os.getpid()} on {socket.gethostname()} since {utc(epoch_ms())}"
        self._link: Link | None = None
        self._turn = asyncio.Lock()
        self._loaded = Loaded()
        self._owns = False
        self._doubt = False  # whether there may be more in the stream than is known
        self._sent: _Sent | None = None  # of the store, while nothing is known of its fate
        self._moving: _Sent | None = None  # of this provider's own
        self._standing = Standing(str(url), "NATS", _MEND)
        self._still = Standstill()
        self._tasks = Tasks()

    @property
    def index(self) -> Index:
        """All that was committed."""
        return self._loaded.index

    @property
    def loaded(self) -> Loaded:
        """How far the log has come."""
        return self._loaded

    @property
    def trouble(self) -> str:
        """Why nothing can be written, and since when; "" as far as is known."""
        return self._standing.trouble

    def watch(self, ended: Callable[[BaseException], None]) -> None:
        """`ended` is told once when this process cannot be the writer any more."""
        self._standing.watch(ended)

    # ------------------------------------------------------------------ start and end

    async def open(self, *, patient: bool) -> None:
        """Reads all that there is, and becomes the writer. Raises InternalError."""
        deadline = monotonic() + (_STARTING_SECONDS if patient else 0.0)
        while True:
            try:
                await self._begin()
            except Lost as failure:
                if not failure.passing or monotonic() > deadline:
                    raise InternalError(f"cannot use {self._url}: {failure}") from failure
            else:
                break
            await asyncio.sleep(_POLL_SECONDS)
        self._still.look()
        self._still.sure()
        self._tasks.start(self._keep(), "NATS")
        self._tasks.start(self._still.run(), "standstill")

    async def _begin(self) -> None:
        self._owns = False
        link = await Link.connect(self._url)
        try:
            link.check()
            await link.make_stream(self._url.replicas)
            former = await link.last(f"{link.prefix}.{WRITER}")
            await self._wait_for_the_last(link)
            self._loaded = await load(link)
            await self._take_over(link, former.sequence if former else 0)
            await link.answer(lambda: self._who)
        except BaseException:
            await link.close()
            raise
        self._link = link

    async def _wait_for_the_last(self, link: Link) -> None:
        deadline = monotonic() + _PREDECESSOR_SECONDS
        while who := await link.writer(_LOOK_SECONDS):
            if monotonic() > deadline:
                raise Occupied(f"another store process ({who}) writes to {self._url}: stop it, or this one")
            await asyncio.sleep(_POLL_SECONDS)

    async def _take_over(self, link: Link, former: int) -> None:
        subject = f"{link.prefix}.{WRITER}"
        part = Part(self._id, self._loaded.group, 0, 1, self._who.encode())
        try:
            await link.claim(subject, former, part.encode())
        except Behind:
            raise Lost("another store process has begun to write meanwhile", passing=True) from None
        await self._catch_up(link)
        if not self._owns:
            raise Lost("a replica is behind", passing=True)
        await link.purge(subject, keep=1)

    async def sure(self) -> None:
        """As Elsewhere says."""
        if self.ended:
            raise self.ended
        if self._still.look() or (self.link is None and not self.trouble):
            await self._ping()
            self._still.sure()

    async def close(self) -> None:
        """Nothing is written any more."""
        await self._tasks.stop()
        link, self._link = self._link, None
        if link and link.up and not self.ended:
            with suppress(Lost):
                await link.say_end()
        if link:
            await link.close()

    # ------------------------------------------------------------------ what is written

    async def commit(self, changes: Changes) -> None:
        """As Provider says. Given again, what is there already is not written again."""
        async with self.turn() as link:
            if self._sent is None or self._sent.changes is not changes:
                self._sent = _Sent.of(changes)
            await self._write(link, self._sent)
            self._sent = None

    async def move(self, of: Callable[[], Changes]) -> None:
        """Commits what `of` gives when nobody else writes, if that is anything."""
        async with self.turn() as link:
            if changes := of():
                self._moving = _Sent.of(changes)
                try:
                    await self._write(link, self._moving)
                finally:
                    self._moving = None

    async def put(self, subject: str, body: bytes) -> int:
        """What is no group; gives the sequence of its last part."""
        async with self.turn() as link:
            parts = encoding.parts(self._id, self._loaded.group, body, encoding.room(link.largest))
            try:
                await self._append(link, subject, parts)
            except Behind:
                raise Lost("a message of before came in between", passing=True) from None
            return self._loaded.last

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Link]:
        """Nobody else writes meanwhile, and all that is there is known. Raises Away, or why it will not be any more."""
        async with self._turn:
            if self.ended:
                raise self.ended
            try:
                yield await self._settled()
            except Lost as failure:
                await self._drop()
                raise self._standing.lost(str(failure), gone=failure.gone) from failure
            self._standing.back()

    async def _write(self, link: Link, sent: _Sent) -> None:
        for _ in range(_ATTEMPTS):
            if sent.there:
                return
            try:
                await self._append_group(link, sent)
            except Behind:
                # A part of it, or all, came by a former connection, or it has another writer.
                await self._catch_up(link)
            else:
                return
        if not sent.there:
            raise Lost("it has taken something that most of its servers do not have yet", passing=True)

    async def _append_group(self, link: Link, sent: _Sent) -> None:
        number, cut = self._loaded.group + 1, encoding.room(link.largest)
        parts = encoding.parts(self._id, number, sent.body, cut)
        first = await self._append(link, self._loaded.subject, parts)
        self._loaded.wrote(first, [len(part.body) for part in parts])
        await self._loaded.apply(number, encoding.places(sent.changes, sent.body, first, cut))

    async def _append(self, link: Link, subject: str, parts: list[Part]) -> int:
        self._doubt = True
        payloads = [part.encode() for part in parts]
        first = await link.append(f"{link.prefix}.{subject}", self._loaded.last, payloads)
        self._doubt = False
        self._loaded.last = first + len(payloads) - 1
        return first

    # ------------------------------------------------------------------ what is known

    @property
    def link(self) -> Link | None:
        """To read by, while there is one."""
        return self._link if self._link and self._link.up else None

    @property
    def ended(self) -> InternalError | None:
        """Why it is not the writer any more."""
        return self._standing.ended

    async def _settled(self) -> Link:
        """A connection, with all known that is there."""
        if self._link and not self._link.up:
            await self._drop()
        if self._link is None:
            self._doubt = True
            link = await Link.connect(self._url)
            self._link = link
            await link.answer(lambda: self._who)
        if self._doubt:
            await self._catch_up(self._link)
        return self._link

    async def _catch_up(self, link: Link) -> None:
        """Reads what is behind the last message that is known."""
        there = (await link.held()).last
        if there < self._loaded.last:
            self._standing.end(
                f"{self._url} has lost what it had confirmed: its last message is {there}, and {self._loaded.last} was "
                "written; was it restored, or are its servers' disks gone?"
            )
        async with aclosing(link.scan(f"{link.prefix}.>", self._loaded.last + 1, there)) as messages:
            async for message in messages:
                await self._take(link, message)
        self._doubt = False

    async def _take(self, link: Link, message: Message) -> None:
        if message.sequence != self._loaded.last + 1:
            raise Lost("a replica is behind", passing=True)
        part = Part.decode(message.payload)
        if self._owns and part.writer != self._id:
            self._standing.end(await self._other(link))
        self._owns = part.writer == self._id
        self._loaded.last = message.sequence
        found = await self._loaded.take(link, message, part)
        for sent in (self._sent, self._moving):
            if found and sent and sent.body == found.body:
                sent.there = True

    async def _other(self, link: Link) -> str:
        who = await link.writer(_LOOK_SECONDS) or "one that does not answer"
        return f"another store process ({who}) has begun to write to {self._url}: stop it, or this one"

    async def _drop(self) -> None:
        link, self._link = self._link, None
        if link:
            await link.close()

    async def _keep(self) -> None:
        """Finds out what happens to the connection while nobody writes, and comes back."""
        pinged = monotonic()
        while not self.ended:
            # At once: to those who stand by it is as dead meanwhile as one that never comes back.
            link = self.link
            await (link.ends(_LOOK_SECONDS) if link else asyncio.sleep(_POLL_SECONDS))
            quiet = self.link is not None and monotonic() - pinged < _PING_SECONDS
            if quiet or self._turn.locked():  # who has the turn finds out
                continue
            pinged = monotonic()
            with suppress(InternalError):
                await self._ping()

    async def _ping(self) -> None:
        async with self.turn() as link:
            if (await link.held()).last != self._loaded.last:
                await self._catch_up(link)
