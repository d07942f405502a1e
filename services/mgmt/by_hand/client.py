"""A connection to a gateway over AMQP 0-9-1, signed in as the caller of mgmt: for the few messages that go by hand.

It is a client like any other: what it sends is authorised, confirmed and on record as that of others.
"""

from __future__ import annotations

import asyncio
import logging
import re
from ast import literal_eval
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pika
from pika import exceptions as faults
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.spec import Basic

from services.common.authentication.claims import Credentials, Token
from services.common.config import Settings
from services.common.errors import (
    AccessRefused,
    BrokerError,
    NotFound,
    PreconditionFailed,
    ResourceLocked,
    SyntaxFault,
    Unavailable,
)
from services.mgmt.by_hand.gateway_host import reachable

# What fails is told to who asks, as often as they like; pika writes five lines about it each time, and tracebacks.
logging.getLogger("pika").setLevel(logging.CRITICAL)

_DEADLINE: Final = 30.0  # seconds, for all that one request wants
_SOCKET: Final = 5.0
_CLOSED: Final = re.compile(r"ConnectionClosedByBroker: \((\d+)\) (.*)", re.DOTALL)
"""How pika tells of a connection that is not let into its virtual host: what the gateway said, as Python writes it."""
_KINDS: Final[dict[int, type[BrokerError]]] = {
    320: Unavailable,
    403: AccessRefused,
    404: NotFound,
    405: ResourceLocked,
    530: AccessRefused,
}


@dataclass(frozen=True, slots=True)
class Login:
    """User, password and address of a sign-in: the address is that of mgmt's caller."""

    user: str
    secret: str = field(repr=False)
    peer: str

    @classmethod
    def of(cls, claim: Credentials | Token, name: str, peer: str) -> Login:
        """As a user of that name has signed in to mgmt."""
        return cls(claim.user or name, claim.secret, peer)


class Got(NamedTuple):
    """A message that was got, and how many were left."""

    method: Any
    properties: Any
    body: bytes


class Channel:
    """What is asked one after the other; each raises the BrokerError that the gateway ends the channel with."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[Any] | None = None
        self._connection: Any = None
        self._channel: Any = None
        self._returned = False
        self._ended: BrokerError | None = None

    async def open(self, parameters: pika.ConnectionParameters) -> None:
        """On a connection of its own."""

        def connect(done: Callable[..., None]) -> None:
            self._connection = AsyncioConnection(parameters, done, on_open_error_callback=self._failed)

        await self._until(connect)
        self._connection.add_on_close_callback(self._failed)
        self._channel = await self._until(lambda done: self._connection.channel(on_open_callback=done))
        self._channel.add_on_close_callback(self._failed)

    def close(self) -> None:
        """The connection too, as far as it is open."""
        if self._connection and not self._connection.is_closing and not self._connection.is_closed:
            self._connection.close()

    async def publish(self, exchange: str, routing_key: str, properties: Any, body: bytes) -> bool:  # noqa: ANN401
        """Whether any queue has it. Raises PreconditionFailed where one refuses it."""
        await self._until(lambda done: self._channel.confirm_delivery(self._confirmed, callback=done))
        self._channel.add_on_return_callback(self._was_returned)
        method = await self._until(
            lambda _: self._channel.basic_publish(exchange, routing_key, body, properties, mandatory=True)
        )
        if isinstance(method, Basic.Nack):
            raise PreconditionFailed("a queue refuses it: it is full, or gone")
        return not self._returned

    async def get(self, queue: str) -> Got | None:
        """None where there is none. It goes back where nothing is said of it before the connection ends."""

        def ask(done: Callable[..., None]) -> None:
            self._channel.add_callback(lambda _frame: done(None), [Basic.GetEmpty])
            self._channel.basic_get(queue, lambda _channel, *got: done(Got(*got)))

        found: Got | None = await self._until(ask)
        return found

    async def accept(self, last: int) -> None:
        """All that were got, up to that one."""
        await self._settled(lambda: self._channel.basic_ack(last, multiple=True))

    async def reject(self, last: int, *, requeue: bool) -> None:
        """The same."""
        await self._settled(lambda: self._channel.basic_nack(last, multiple=True, requeue=requeue))

    async def _settled(self, settle: Callable[[], None]) -> None:
        """Returns when it is done: requests of a channel are carried out in their order."""

        def begin(done: Callable[..., None]) -> None:
            settle()
            self._channel.basic_qos(callback=done)

        await self._until(begin)

    def _confirmed(self, frame: Any) -> None:  # noqa: ANN401 - pika's
        self._done(frame.method)

    def _was_returned(self, *_: object) -> None:
        self._returned = True

    # -------------------------------------------------------------- waiting

    async def _until(self, begin: Callable[[Callable[..., None]], Any]) -> Any:  # noqa: ANN401 - pika's
        """What the callback is told that `begin` is given."""
        if self._ended:
            raise self._ended
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            begin(self._done)
        except BaseException as error:
            self._waiting.cancel()
            if isinstance(error, faults.AMQPError):
                raise self._ended or _error(error) from None
            raise
        return await self._waiting

    def _done(self, told: Any = None, *_: object) -> None:  # noqa: ANN401 - pika's
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(told)

    def _failed(self, _who: object, reason: object) -> None:
        """The connection, or the channel, ended: told now, or when something more is wanted of it."""
        self._ended = self._ended or _error(reason)
        if self._waiting and not self._waiting.done():
            self._waiting.set_exception(self._ended)


@asynccontextmanager
async def channel(settings: Settings, login: Login, virtual_host: str) -> AsyncIterator[Channel]:
    """Raises AccessRefused where the gateway does not let them in, Unavailable where nothing is done for long."""
    opened = Channel()
    try:
        async with asyncio.timeout(_DEADLINE):
            await opened.open(_parameters(settings, login, virtual_host))
            yield opened
    except TimeoutError:
        raise Unavailable("the gateway has not done it in time; it may do it yet") from None
    finally:
        opened.close()


def _parameters(settings: Settings, login: Login, virtual_host: str) -> pika.ConnectionParameters:
    return pika.ConnectionParameters(
        host=reachable(settings),
        port=settings.amqp_port,
        virtual_host=virtual_host,
        credentials=pika.PlainCredentials(login.user, login.secret, erase_on_connect=True),
        heartbeat=0,
        connection_attempts=1,
        socket_timeout=_SOCKET,
        stack_timeout=2 * _SOCKET,
        client_properties={"connection_name": f"management, for {login.peer}"},
    )


def _error(reason: object) -> BrokerError:
    if isinstance(reason, faults.ProbableAccessDeniedError) and (closed := _CLOSED.fullmatch(str(reason.args[0]))):
        return _error(faults.ConnectionClosedByBroker(int(closed[1]), literal_eval(closed[2])))
    if isinstance(reason, faults.ConnectionClosed | faults.ChannelClosed):
        return _KINDS.get(reason.reply_code, PreconditionFailed)(reason.reply_text)
    if isinstance(reason, faults.ShortStringTooLong):
        return SyntaxFault("a name has at most 255 bytes")
    if isinstance(reason, faults.ProbableAuthenticationError | faults.AuthenticationError):
        return AccessRefused("the gateway does not let that user in: it wants PLAIN, and the right password")
    return Unavailable(f"no gateway answers ({reason or type(reason).__name__})")
