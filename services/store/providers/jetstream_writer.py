"""The writer, which appends to the log: one group after the other, none of them twice, and one process at a time.

Each message names the sequence of the one before it, and the stream takes it only where that is its last. So a process
that has not seen all messages cannot write: another process, once this one has written, or this one, while one of its
own messages is under way without its knowledge. No clock decides that, and no lease.

If an answer is lost, the writer reads what came behind the last known group: the group is there, or in part, or not at
all; in the latter cases it is written again, behind that. If the first attempt arrives late, one of the two names the
wrong sequence.

A process that starts becomes the writer by a message that names only the message by which the last writer did: it shuts
out any other writer, everything written is before it, and of two processes that start at once only one succeeds. It
first asks for the writer, and begins when none answers (`jetstream_lookout.py`).
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import structlog

from services.common.clock import epoch_ms, monotonic
from services.common.errors import InternalError
from services.common.remedies import TRIED_AGAIN
from services.common.restored import utc
from services.common.runtime import Tasks
from services.store.provider import Changes, Occupied
from services.store.providers import jetstream_words as words
from services.store.providers.jetstream_encoding import Part
from services.store.providers.jetstream_index import Index
from services.store.providers.jetstream_known import Known, Sent
from services.store.providers.jetstream_link import Behind, Damaged, JetStreamLink, Lost
from services.store.providers.jetstream_load import WRITER, Loaded, load
from services.store.providers.jetstream_space import Left
from services.store.providers.jetstream_turns import Turns
from services.store.providers.jetstream_url import Url
from services.store.providers.standing import Standing
from services.store.providers.standstill import Standstill

_LOOK_SECONDS = 1.0
_PING_SECONDS = 5.0
_BUSY_SECONDS = 15.0  # for which commits may delay a ping
_ENDING_SECONDS = 1.0  # for a writer that is just ending; beside one that lives a process stands by
_STARTING_SECONDS = 60.0  # to wait for servers that are there, and do not serve yet
_POLL_SECONDS = 0.25
_ATTEMPTS = 3
_MEND = "start NATS, or mend the way to it; the store goes on by itself"

log = structlog.get_logger()


class Writer:
    """The writer of the stream at `url`; `open` comes before anything else."""

    def __init__(self, url: Url) -> None:
        self._url = url
        self._turns = Turns(url)
        self._id = secrets.randbits(63)
        self._who = f"process {os.getpid()} on {socket.gethostname()} since {utc(epoch_ms())}"
        self._link: JetStreamLink | None = None
        self._turn = asyncio.Lock()
        self._missing = ""  # what the last attempt has found missing
        self._standing = Standing(str(url), "NATS", _MEND)
        self._known = Known(str(url), self._id, self._standing)
        self._still = Standstill()
        self._tasks = Tasks()

    @property
    def index(self) -> Index:
        """The index of all committed data."""
        return self._known.loaded.index

    @property
    def loaded(self) -> Loaded:
        """The committed data, and how far the log has come."""
        return self._known.loaded

    @property
    def left(self) -> Left:
        """The room that is left in the stream."""
        return self._known.left

    @property
    def trouble(self) -> str:
        """Why nothing can be written, and since when; "" as far as is known."""
        return self._standing.trouble

    def watch(self, ended: Callable[[BaseException], None]) -> None:
        """`ended` is called once when this process cannot be the writer any more."""
        self._standing.watch(ended)

    # ------------------------------------------------------------------ start and end

    async def open(self, *, patient: bool) -> None:
        """Reads all data, and becomes the writer. Raises InternalError."""
        deadline = 0.0
        while failure := await self._attempt():
            # The time counts from the first failure: reading much data takes long, and is no failure.
            deadline = deadline or monotonic() + (_STARTING_SECONDS if patient else 0.0)
            if self._lasting(failure) or monotonic() >= deadline:
                raise InternalError(f"cannot use {self._url}: {failure}") from failure
            await asyncio.sleep(_POLL_SECONDS)
        self._still.look()
        self._still.sure()
        self._tasks.start(self._keep(), "NATS")
        self._tasks.start(self._still.run(), "standstill")

    async def _attempt(self) -> Lost | None:
        try:
            await self._begin()
        except Lost as failure:
            return failure
        return None

    def _lasting(self, failure: Lost) -> bool:
        """Whether another attempt would fail in the same way."""
        before, self._missing = self._missing, str(failure) if isinstance(failure, Damaged) else ""
        return not failure.passing or (bool(before) and before == self._missing)

    async def _begin(self) -> None:
        self._known.owns = False
        link = await JetStreamLink.connect(self._turns.next())
        try:
            link.check()
            copies = await link.make_stream(self._url.replicas)
            former = await link.last(f"{link.prefix}.{WRITER}")
            await self._wait_for_the_last(link)
            self._known.loaded = await load(link)
            # Before it is the writer: who asks after that, and hears nobody, would shut it out.
            await link.answer(lambda: self._who)
            await self._take_over(link, former.sequence if former else 0)
        except BaseException:
            await link.close()
            raise
        self._link = link
        if copies == 1 and link.clustered and not self._url.replicas:
            say = "say ?replicas=3 in HOPLINE_STORE_URL, or 1 if that is meant"
            log.warning("the stream has one copy: all is lost with that server's disk", stream=str(self._url), do=say)

    async def _wait_for_the_last(self, link: JetStreamLink) -> None:
        deadline = monotonic() + _ENDING_SECONDS
        while who := await link.writer(_LOOK_SECONDS):
            if monotonic() > deadline:
                raise Occupied(f"another store process ({who}) writes to {self._url}: stop it, or this one")
            await asyncio.sleep(_POLL_SECONDS)

    async def _take_over(self, link: JetStreamLink, former: int) -> None:
        subject = f"{link.prefix}.{WRITER}"
        part = Part(self._id, self._known.loaded.group, 0, 1, self._who.encode())
        try:
            await link.claim(subject, former, part.encode())
        except Behind:
            raise Lost("another store process has begun to write meanwhile", passing=True) from None
        await self._known.catch_up(link)
        if not self._known.owns:
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
        """Ends: nothing is written any more."""
        await self._tasks.stop()
        link, self._link = self._link, None
        if link and link.up and not self.ended:
            with suppress(Lost):
                await link.say_end(self._who)
        if link:
            await link.close()

    # ------------------------------------------------------------------ what is written

    async def commit(self, changes: Changes) -> None:
        """As Provider says. If called again with the same changes, it does not write what is there already."""
        async with self.turn() as link:
            if self._known.sent is None or self._known.sent.changes is not changes:
                self._known.sent = Sent.of(changes)
            await self._write(link, self._known.sent)
            self._known.sent = None

    async def move(self, of: Callable[[], Changes]) -> None:
        """Commits what `of` gives, unless that is empty; `of` is called in a turn."""
        async with self.turn() as link:
            if changes := of():
                self._known.moving = Sent.of(changes)
                try:
                    await self._write(link, self._known.moving)
                finally:
                    self._known.moving = None

    async def put(self, subject: str, body: bytes) -> int:
        """Writes a message that is no group; gives the sequence of its last part."""
        async with self.turn() as link:
            return await self._known.put(link, subject, body)

    async def fence(self, link: JetStreamLink, subject: str) -> None:
        """Writes a fence, in a turn: nothing sent earlier arrives after it, and no other process has written."""
        await self._known.put(link, subject, b"")

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[JetStreamLink]:
        """A turn to write, with everything in the stream known. Raises Away, or why this writer has ended."""
        async with self._turn:
            if self.ended:
                raise self.ended
            asked = epoch_ms()
            try:
                yield await self._settled()
            except Lost as failure:
                await self._drop()
                if isinstance(failure, Damaged) and self._lasting(failure):
                    self._standing.end(f"{self._url}: {failure}")
                raise self._standing.lost(str(failure), gone=failure.gone, do=failure.do, asked=asked) from failure
            self._standing.back()
            self._missing = ""

    async def _write(self, link: JetStreamLink, sent: Sent) -> None:
        for _ in range(_ATTEMPTS):
            if sent.there:
                return
            try:
                await self._known.append_group(link, sent.body, sent.changes)
            except Behind:
                # Part of the group, or all, arrived over a former connection, or another process writes.
                await self._known.catch_up(link)
            else:
                return
        if not sent.there:
            raise Lost("it has taken something that most of its servers do not have yet", passing=True)

    # ------------------------------------------------------------------ what is known

    @property
    def link(self) -> JetStreamLink | None:
        """The connection for reads, while there is one."""
        return self._link if self._link and self._link.up else None

    @property
    def ended(self) -> InternalError | None:
        """Why this process is not the writer any more, or None."""
        return self._standing.ended

    async def _settled(self) -> JetStreamLink:
        """A connection, with all known that is there."""
        if self.link is None and not self.trouble:
            # Before there is another one: who renews leases would wait for that.
            self._standing.lost(words.ENDED, gone=True)
        if self._link and not self._link.up:
            await self._drop()
        if self._link is None:
            self._known.doubt = True
            link = await JetStreamLink.connect(self._turns.next())
            self._link = link
            await link.answer(lambda: self._who)
        if self._known.doubt:
            await self._known.catch_up(self._link)
        return self._link

    async def _drop(self) -> None:
        link, self._link = self._link, None
        if link:
            await link.close()

    async def _keep(self) -> None:
        """Watches the connection while nothing is written, and restores it when it is lost."""
        pinged = monotonic()
        while not self.ended:
            # At once: without a connection, processes that stand by take this one for dead.
            link = self.link
            await (link.ends(_LOOK_SECONDS) if link else asyncio.sleep(_POLL_SECONDS))
            since = monotonic() - pinged
            quiet = self.link is not None and since < _PING_SECONDS
            busy = self._turn.locked() and since < _BUSY_SECONDS
            if quiet or busy:  # the commit that has the turn notices, except for the stream's configuration
                continue
            pinged = monotonic()
            try:
                await self._ping()
            except InternalError:
                pass  # it was logged
            except Exception as failure:  # noqa: BLE001 - whatever it is, the connection must be checked again
                log.warning("cannot see whether NATS is there", reason=repr(failure), do=TRIED_AGAIN)

    async def _ping(self) -> None:
        async with self.turn() as link:
            await self._known.look(link)
