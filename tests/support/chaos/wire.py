"""A connection of pika with one channel, on the running loop: what it calls back is awaited."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pika
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.exceptions import AMQPError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.interop_address import BrokerAddress

ANSWER_SECONDS = 60.0
OPEN_SECONDS = 10.0
HEARTBEAT = 5

# Lost connections are the point here, and are told in the account.
logging.getLogger("pika").setLevel(logging.CRITICAL)


class Lost(Exception):
    """The connection or its channel is gone."""


class Wire:
    """Made by `open`; `lost` is done with the reason when the connection or the channel ends."""

    def __init__(self) -> None:
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.channel: Any = None
        self._connection: Any = None

    @classmethod
    async def open(cls, address: BrokerAddress, client: str = "") -> Wire:
        """`client` is what the application calls itself. Raises Lost."""
        wire = cls()
        parameters = pika.ConnectionParameters(
            address.host,
            address.port,
            credentials=pika.PlainCredentials(address.user, address.password),
            heartbeat=HEARTBEAT,
            client_properties={"connection_name": client} if client else None,
            socket_timeout=OPEN_SECONDS / 2,
            stack_timeout=OPEN_SECONDS / 2,
        )
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[Any] = loop.create_future()
        wire._connection = AsyncioConnection(
            parameters,
            on_open_callback=lambda connection: _resolve(opened, connection),
            on_open_error_callback=lambda _, failure: wire._end(repr(failure)),
            on_close_callback=lambda _, failure: wire._end(repr(failure)),
            custom_ioloop=loop,
        )
        await wire._first(opened, OPEN_SECONDS)
        wire.channel = await wire.answer(lambda done: wire._connection.channel(on_open_callback=done))
        wire.channel.add_on_close_callback(lambda _, failure: wire._end(repr(failure)))
        return wire

    async def answer(self, ask: Callable[[Callable[[Any], None]], Any]) -> Any:
        """Has `ask` called with a callback, and gives what that is called with; raises Lost."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.lost.done():
            raise Lost(self.lost.result())
        try:
            ask(lambda value: _resolve(done, value))
        except AMQPError as failure:
            raise Lost(repr(failure)) from failure
        return await self._first(done, ANSWER_SECONDS)

    async def close(self) -> None:
        """Says goodbye if the broker listens."""
        with suppress(AMQPError):
            self._connection.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(OPEN_SECONDS):
                await asyncio.shield(self.lost)

    async def _first(self, done: asyncio.Future[Any], seconds: float) -> Any:
        await asyncio.wait({done, self.lost}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if done.done():
            return done.result()
        reason = self.lost.result() if self.lost.done() else f"no answer in {seconds} seconds"
        with suppress(AMQPError):
            self._connection.close()
        raise Lost(reason)

    def _end(self, reason: str) -> None:
        _resolve(self.lost, reason)


def _resolve(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)
