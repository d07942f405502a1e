"""One connection to the servers, and the requests to JetStream. Every failure is raised as a Lost with a reason."""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing, suppress
from typing import Any, NamedTuple, TypeVar

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error, NoRespondersError
from nats.js import JetStreamContext
from nats.js.api import PubAck, StreamInfo
from nats.js.errors import APIError, NotFoundError

from services.common.bus.nats_link import close
from services.common.runtime import CannotStart, within
from services.store.providers import jetstream_words as words
from services.store.providers.jetstream_config import fault, wanted
from services.store.providers.jetstream_url import Url

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 5.0
_BYTES_PER_SECOND = 1 << 20  # the slowest rate at which messages are expected to be taken
_AT_ONCE = 64  # messages of one group under way
_BATCH = 500
_BATCH_BYTES = 4 << 20
_CLUSTER = 3  # replicas in a cluster
_OLDEST = (2, 11)  # the first release that reads batches
# Bytes of messages; a content is read with the whole message that it is in.
_LARGEST, _SMALLEST = 128 << 10, 32 << 10
_HEADERS = 1 << 10  # what a message has besides its payload
_EXPECTED = "Nats-Expected-Last-Sequence"
_EXPECTED_OF_SUBJECT = "Nats-Expected-Last-Subject-Sequence"
_WRONG_LAST_SEQUENCE = 10071
_EDIT = "set it back (nats stream edit), and the store goes on by itself"
_HEARD = 10  # errors of the server that are no answers to a request; each request may cause one
_VIOLATION = "permissions violation"
_PERMIT = "let the store's user do what deploy/stores.md names; the store goes on by itself"

T = TypeVar("T")


class Lost(Exception):
    """A request failed, or its outcome is unknown; another connection may succeed later."""

    def __init__(self, why: str, *, gone: bool = False, passing: bool = False, do: str = "") -> None:
        """`gone`: no server answers; `passing`: one does, and may succeed in a moment; `do`: a remedy, if known."""
        super().__init__(why)
        self.do = do
        self.gone = gone
        self.passing = passing


class Damaged(Lost):
    """A message is missing that has to be there. It is lost if the next attempt finds the same, and not just removed by
    another writer.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why, passing=True)


class NotThere(Lost):
    """The stream, or message, does not exist."""


class _Silent(Lost):
    """No server answers."""


class Behind(Exception):
    """The stream has other, or more, messages than the caller knows of."""


class Message(NamedTuple):
    """A message of the stream."""

    subject: str
    sequence: int
    payload: bytes


class Held(NamedTuple):
    """The state of the stream: its last sequence ever, the number of messages of each subject, and bytes."""

    last: int
    subjects: dict[str, int]
    bytes: int
    most: int  # the limit in bytes; 0: none


class JetStreamLink:
    """A connection, made by `connect`; it must not be used any more once a method has raised Lost."""

    def __init__(self, client: Client, url: Url, end: asyncio.Future[None], heard: Iterable[Exception]) -> None:
        """`end` is done when the connection has ended: the client would let requests wait on for their answers.

        `heard` are the server's latest errors that are no answers to a request.
        """
        self._client = client
        self._end = end
        self._heard = heard
        self._answers: Subscription | None = None
        self._stream = url.stream
        self._jetstream: JetStreamContext = client.jetstream(timeout=_ANSWER_SECONDS)
        self.prefix = f"hopline.store.{url.stream}"
        self._wanted = wanted(url.stream, f"{self.prefix}.>")

    @classmethod
    async def connect(cls, url: Url) -> JetStreamLink:
        """Connects to the first of the servers that accepts. Raises Lost, also where that one says nothing."""
        arguments = _arguments(url)
        client, failures = Client(), deque[Exception](maxlen=_HEARD)
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def note(failure: Exception) -> None:
            failures.append(failure)

        async def note_end() -> None:
            if not end.done():
                end.set_result(None)

        try:
            connecting = client.connect(
                **arguments,
                name="hopline store",
                allow_reconnect=False,  # else it would be unknown which messages were under way
                max_reconnect_attempts=-1,
                dont_randomize=True,
                reconnect_time_wait=1,
                error_cb=note,
                closed_cb=note_end,
            )
            await within(_CONNECT_SECONDS, connecting)
        except BaseException as failure:
            await close(client)
            if isinstance(failure, (Error, OSError, ValueError)):
                raise _lost(failures[-1] if failures and isinstance(failure, TimeoutError) else failure) from failure
            raise
        return cls(client, url, end, failures)

    async def close(self) -> None:
        """Ends the connection, in any state."""
        await close(self._client)

    @property
    def up(self) -> bool:
        """Whether the client is connected, as far as it knows."""
        return self._client.is_connected

    async def ends(self, seconds: float) -> None:
        """Returns when the connection has ended, and after so many seconds if it has not."""
        await asyncio.wait({self._end}, timeout=seconds)

    @property
    def largest(self) -> int:
        """The largest payload of a message, in bytes."""
        return self._largest_message - _HEADERS

    @property
    def _largest_message(self) -> int:
        return min(self._client.max_payload, _LARGEST)

    def check(self) -> None:
        """Raises Lost where the server cannot be used."""
        version: str = self._client._server_info.get("version", "")  # noqa: SLF001 - as it was said; parsed, it raises
        numbers = re.match(r"v?(\d+)\.(\d+)", version)
        if not numbers or tuple(map(int, numbers.groups())) < _OLDEST:
            raise Lost(f"NATS {version} is too old, {'.'.join(map(str, _OLDEST))} is the first that does")
        if not self._client._server_info.get("jetstream"):  # noqa: SLF001 - as above
            raise Lost("it has no JetStream, or not for this user: switch it on")
        if self.largest < _SMALLEST:
            raise Lost(f"its max_payload is {self._client.max_payload}, and must be {_SMALLEST + _HEADERS} at least")

    @property
    def clustered(self) -> bool:
        """Whether there are other servers, which could have replicas."""
        return bool(self._client._server_info.get("cluster"))  # noqa: SLF001 - as above

    # ------------------------------------------------------------------ the stream

    async def make_stream(self, replicas: int) -> int:
        """Makes the stream if it does not exist; gives its replicas. `replicas` 0: three in a cluster, else one."""
        try:
            found = await self._info()
        except NotThere:
            copies = replicas or (_CLUSTER if self.clustered else 1)
            found = await self._asked(self._jetstream.add_stream(self._wanted.evolve(num_replicas=copies)))
        if replicas and found.config.num_replicas != replicas:
            found = await self._asked(self._jetstream.update_stream(found.config.evolve(num_replicas=replicas)))
        return found.config.num_replicas or 1

    async def held(self, subjects: str = "") -> Held:
        """The state of the stream according to its leader; counts the messages of subjects that match `subjects`."""
        info = await self._info(subjects)
        return Held(
            info.state.last_seq, info.state.subjects or {}, info.state.bytes, max(0, info.config.max_bytes or 0)
        )

    async def _info(self, subjects: str = "") -> StreamInfo:
        """Raises Lost where the stream's configuration by now allows it to lose messages."""
        info = await self._asked(self._jetstream.stream_info(self._stream, subjects_filter=subjects or None))
        if wrong := fault(info.config, self._wanted, self._largest_message):
            raise Lost(f"the stream is not one of a store: {wrong}; edit it, or take another", do=_EDIT)
        return info

    async def append(self, subject: str, last: int, payloads: Sequence[bytes]) -> int:
        """Appends messages behind the sequence `last`, which must be the stream's last; gives the first one's sequence.

        Raises Behind where it is not the last; then, and where Lost is raised, some of them may be there.
        """
        for start in range(0, len(payloads), _AT_ONCE):
            part = payloads[start : start + _AT_ONCE]
            seconds = _ANSWER_SECONDS + sum(map(len, part)) / _BYTES_PER_SECOND
            puts = [self._put(subject, last + start + nth, payload, seconds) for nth, payload in enumerate(part)]
            await self._asked(_all(puts))
        return last + 1

    async def _put(self, subject: str, last: int, payload: bytes, seconds: float) -> None:
        await self._publish(subject, payload, seconds, {_EXPECTED: str(last)})

    async def _publish(self, subject: str, payload: bytes, seconds: float, headers: dict[str, str]) -> PubAck:
        put = self._jetstream.publish(subject, payload, timeout=seconds, headers=headers)
        try:
            return await _within(seconds, put)
        except APIError as failure:
            if failure.err_code == _WRONG_LAST_SEQUENCE:
                raise Behind from failure
            raise

    async def claim(self, subject: str, former: int, payload: bytes) -> int:
        """Appends a message, if `former` is the last one of its subject; gives its sequence.

        Raises Behind where the subject has another last message by now.
        """
        headers = {_EXPECTED_OF_SUBJECT: str(former)}
        return (await self._asked(self._publish(subject, payload, _ANSWER_SECONDS, headers))).seq

    async def purge(self, subject: str, keep: int = 0) -> None:
        """Deletes the messages of a subject, except for the last `keep`."""
        await self._asked(self._jetstream.purge_stream(self._stream, subject=subject, keep=keep or None))

    async def last(self, subject: str) -> Message | None:
        """The last message whose subject matches, according to the stream's leader."""
        try:
            found = await self._asked(self._jetstream.get_last_msg(self._stream, subject))
        except NotThere:
            return None
        return Message(found.subject or "", found.seq or 0, found.data or b"")

    async def message(self, sequence: int) -> bytes | None:
        """A message; None where it is gone. Any replica may give it; only the leader may say that there is none."""
        for direct in (True, False):
            with suppress(NotThere):
                found = await self._asked(self._jetstream.get_msg(self._stream, sequence, direct=direct))
                return found.data or b""
        return None

    async def scan(self, subject: str, first: int, until: int) -> AsyncGenerator[Message, None]:
        """Messages whose subject matches, from one sequence to another that exists.

        Ends earlier where the stream's leader has no more of them. Raises Lost where the replica that answers lags.
        """
        while first <= until:
            sequence = first
            async with aclosing(self._batch(subject, first)) as batch:
                async for message in batch:
                    sequence = message.sequence + 1
                    yield message
            if sequence == first:
                newest = await self.last(subject)
                if newest is None or newest.sequence < first:
                    return
                raise Lost("a replica is behind", passing=True)
            first = sequence

    async def _batch(self, subject: str, first: int) -> AsyncGenerator[Message, None]:
        wanted = {"seq": first, "next_by_subj": subject, "batch": _BATCH, "max_bytes": _BATCH_BYTES}
        ask, inbox = f"$JS.API.DIRECT.GET.{self._stream}", self._client.new_inbox()
        answers = await self._asked(self._client.subscribe(inbox))
        try:
            await self._asked(self._client.publish(ask, json.dumps(wanted).encode(), inbox))
            while True:
                answer = await self._asked(answers.next_msg(_ANSWER_SECONDS))
                headers = answer.headers or {}
                if "Nats-Sequence" not in headers:  # no more of them
                    return
                yield Message(headers["Nats-Subject"], int(headers["Nats-Sequence"]), answer.data)
        finally:
            if self.up:
                await answers.unsubscribe()

    # ------------------------------------------------------------------ who writes

    async def answer(self, say: Callable[[], str]) -> None:
        """Answers requests for the writer's name."""

        async def reply(asked: Msg) -> None:
            await asked.respond(say().encode())

        self._answers = await self._asked(self._client.subscribe(self._who, cb=reply))

    async def hush(self) -> None:
        """Stops answering requests for the writer's name."""
        answers, self._answers = self._answers, None
        if answers:
            await self._asked(answers.unsubscribe())

    async def writer(self, seconds: float) -> str | None:
        """The name that the writer answers; "" without an answer within so many seconds; None when none listens."""
        try:
            answer = await self._asked(self._client.request(self._who, timeout=seconds))
        except _Silent as failure:
            return None if isinstance(failure.__cause__, NoRespondersError) else ""
        return answer.data.decode(errors="replace")

    async def say_end(self, who: str) -> None:
        """Tells who stands by that `who` does not write here from now on."""
        await self._asked(self._client.publish(f"{self._who}.ends", who.encode()))
        await self._asked(self._client.flush())

    async def when_writer_ends(self, hear: Callable[[str], None]) -> None:
        """`hear` is called with who says so."""

        async def heard(said: Msg) -> None:
            hear(said.data.decode(errors="replace"))

        await self._asked(self._client.subscribe(f"{self._who}.ends", cb=heard))

    @property
    def _who(self) -> str:
        return f"hopline.store-writer.{self._stream}"

    async def _asked(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`; raises Lost if the connection ends first."""
        task = asyncio.ensure_future(work)
        either: set[asyncio.Future[Any]] = {task, self._end}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Lost(words.ENDED, gone=True)
            return task.result()
        except (Error, OSError) as failure:
            raise self._denied(failure) or _lost(failure) from failure
        finally:
            task.cancel()

    def _denied(self, failure: BaseException) -> Lost | None:
        """The Lost for a request without permission: it gets no answer, but the server sends an error apart from it."""
        said = next((str(heard) for heard in self._heard if _VIOLATION in str(heard).lower()), "")
        return Lost(said, do=_PERMIT) if said and isinstance(failure, TimeoutError) else None


def _arguments(url: Url) -> dict[str, Any]:
    try:
        return url.arguments()
    except (OSError, CannotStart) as failure:
        raise Lost(words.reason(failure)) from failure
    except ValueError:  # its text is not shown: it may have part of a secret
        raise Lost("one of the files that HOPLINE_STORE_URL names is no text") from None


async def _within(seconds: float, work: Awaitable[T]) -> T:
    """Bounds `work` in time: the client's own limit begins only when it has sent all, and the server may not read."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError as failure:
        raise nats.errors.TimeoutError from failure


async def _all(work: Sequence[Awaitable[None]]) -> None:
    """Waits for all, then raises the first failure: so none is left running."""
    for outcome in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def _lost(failure: BaseException) -> Lost:
    passing = words.passing(failure)
    kind = next((lost for error, lost in _KINDS if isinstance(failure, error)), Lost)
    gone = words.gone(failure) and not passing
    return kind(words.reason(failure), gone=gone, passing=passing, do=words.remedy(failure))


_KINDS: tuple[tuple[type[BaseException], type[Lost]], ...] = (
    (NotFoundError, NotThere),
    (NoRespondersError, _Silent),
    (nats.errors.TimeoutError, _Silent),
)
