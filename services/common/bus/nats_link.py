"""One connection to NATS, from `connect` to its first failure."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from nats.aio.client import Client
from nats.errors import Error
from nats.js import JetStreamContext

from services.common.bus.address import token_for
from services.common.clock import monotonic
from services.common.runtime import within

_CONNECT_SECONDS = 2.0
_AGAIN_SECONDS = 0.2  # between the attempts of one `connect` where nobody listens …
_REFUSED_SECONDS = 0.05  # … and where the server would not have it
_ANSWER_SECONDS = 2.0
_LONGEST_ANSWER = 3600  # seconds; the callers give up long before
_FAREWELL_SECONDS = 1.0

_create: Callable[[], Client] = Client


def set_client(create: Callable[[], Client]) -> None:
    """Connections of this process are made by `create` from now on: a test may bring a NATS of its own."""
    global _create  # noqa: PLW0603 - one for the whole process is the point
    _create = create


class Away(Exception):
    """NATS cannot be reached, or did not answer."""


class TooLarge(Exception):
    """NATS takes no message of this size, however often it is sent."""


class NatsLink:
    """Made by `connect`; of no use any more once `send` has raised."""

    def __init__(self, client: Client, ended: asyncio.Event) -> None:
        self._client = client
        self._ended = ended
        self._asked: set[asyncio.Task[None]] = set()  # pings without an answer

    @classmethod
    async def connect(cls, address: str, name: str) -> NatsLink:
        """Tries for two seconds; raises Away.

        A server that has as many connections as it may refuses at once, and lets in whoever comes next when one of
        them goes: strangers are closed after two seconds.
        """
        refused, until = "", monotonic() + _CONNECT_SECONDS
        try:
            while (left := until - monotonic()) > 0:
                try:
                    return await cls._attempt(left, address, name)
                except (Error, ConnectionError) as failure:
                    refused = str(failure) or type(failure).__name__
                await asyncio.sleep(_REFUSED_SECONDS)
        except TimeoutError:
            pass
        except (OSError, ValueError) as failure:
            raise Away(str(failure) or type(failure).__name__) from failure
        raise Away(refused) if refused else _silent(_CONNECT_SECONDS)

    @classmethod
    async def _attempt(cls, seconds: float, address: str, name: str) -> NatsLink:
        client, ended = _create(), asyncio.Event()

        async def note_end() -> None:
            ended.set()

        try:
            connecting = client.connect(
                address,
                name=name,
                token=token_for(address),
                # We reconnect ourselves: only then is it known which events were on their way.
                allow_reconnect=False,
                max_reconnect_attempts=-1,
                reconnect_time_wait=_AGAIN_SECONDS,  # type: ignore[arg-type]  # it is only slept
                error_cb=_ignore,
                closed_cb=note_end,
            )
            await within(seconds, connecting)
        except BaseException:
            await close(client)
            raise
        return cls(client, ended)

    @property
    def up(self) -> bool:
        """Whether nothing has gone wrong yet, as far as this process knows."""
        return self._client.is_connected and not self._ended.is_set()

    async def send(self, messages: Sequence[tuple[str, bytes]]) -> None:
        """Returns when the server has taken all (subject, payload) pairs, in order; raises Away."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                for subject, payload in messages:
                    await self._client.publish(subject, payload)
                await self._answered()
        except TimeoutError as failure:
            raise _silent(_ANSWER_SECONDS) from failure
        except (Error, OSError) as failure:
            raise Away(str(failure) or type(failure).__name__) from failure

    async def require(self) -> None:
        """Returns when the server has answered; raises Away."""
        await self.send(())

    async def store(self, subject: str, payload: bytes, headers: dict[str, str] | None = None) -> None:
        """Returns when a stream of JetStream has the message; raises Away, and TooLarge for what it never takes."""
        # The client counts the payload alone; the server ends the connection of whoever sends more with the headers.
        size, most = len(payload) + _size_of(headers or {}), self._client.max_payload
        if size > most:
            raise TooLarge(f"{size} octets with its headers, of {most}")
        try:
            await self._client.jetstream(timeout=_ANSWER_SECONDS).publish(subject, payload, headers=headers)
        except (Error, OSError) as failure:
            raise Away(str(failure) or type(failure).__name__) from failure

    async def set_up(self, work: Callable[[JetStreamContext], Awaitable[None]]) -> None:
        """Runs `work` with JetStream; raises Away for its errors."""
        try:
            await work(self._client.jetstream(timeout=_ANSWER_SECONDS))
        except (Error, OSError) as failure:
            raise Away(str(failure) or type(failure).__name__) from failure

    async def close(self) -> None:
        """Ends the connection, in any state."""
        await close(self._client)
        await _cancel(self._asked)

    async def _answered(self) -> None:
        """Waits for the answer to a ping, which comes after everything that was written before it.

        An unanswered ping waits until the link is closed: the client, when an answer comes for which no task waits,
        logs a traceback and reads nothing more.
        """
        loop = asyncio.get_running_loop()
        answer = loop.create_task(self._client.flush(_LONGEST_ANSWER))
        self._asked.add(answer)
        end = loop.create_task(self._ended.wait())
        try:
            await asyncio.wait({answer, end}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancel((end,))
        if not answer.done():
            raise Away("connection lost")
        self._asked.discard(answer)
        answer.result()


def _size_of(headers: Mapping[str, str]) -> int:
    """Octets: a line for each, one in front of them, and an empty one behind (NATS's ADR-4)."""
    lines = sum(len(name.encode()) + len(value.encode()) + len(": \r\n") for name, value in headers.items())
    return lines and lines + len("NATS/1.0\r\n\r\n")


def _silent(seconds: float) -> Away:
    return Away(f"no answer within {seconds:.0f} s")


async def _cancel(tasks: Iterable[asyncio.Task[object]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def close(client: Client) -> None:
    """Ends the client in any state, within a second: its own `close` may wait for tasks of its own that are cancelled.

    A client that never connected fails an assertion in `close`.
    """
    with contextlib.suppress(Error, OSError, AssertionError):
        async with asyncio.timeout(_FAREWELL_SECONDS):
            await client.close()


async def _ignore(_failure: Exception) -> None:
    """Does nothing: callers get an exception, and the client would log each attempt."""
