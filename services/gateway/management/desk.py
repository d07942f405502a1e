"""Takes requests that clients publish to the management node, has them answered by mgmt, and publishes the replies.

The way of messages waits for none of it: a request is a message that has arrived when it is taken, and what becomes of
it is done in the background, in order for each connection. A reply is published as the client itself would do it, by
its permissions. Where a client has gone, or the broker ends its connection since its user was deleted or changed, what
mgmt has begun goes on and no reply is published; what waits is dropped, as its client is gone. That
happens at its turn, or before, when another client asks, or there is no room: while mgmt hangs, there are no turns.
Users have their turns one after the other, and fair shares of the room and of what mgmt has at once, however many
connections each has.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary, ref

import structlog

from services.common.audit.acting import act_for
from services.common.authentication.fair_slots import FairSlots
from services.common.clients.mgmt import MgmtClient
from services.common.containment import contained
from services.common.errors import (
    AccessRefused,
    BrokerError,
    NotFound,
    PreconditionFailed,
    SyntaxFault,
    Unavailable,
    of_kind,
)
from services.common.few_lines import FewLines
from services.common.message import format_named
from services.common.message.facts import facts_of
from services.common.runtime import Tasks
from services.common.topology.slots import SlotName
from services.gateway.management.by_hand import publish_by_hand
from services.gateway.management.forms import Requester, form_of
from services.gateway.management.line import LARGEST, Line, Room, Waiting, waiting_of
from services.gateway.management.presence import is_over, waits
from services.gateway.operations.publish import publish
from services.gateway.sessions.consumer import Consumer, ConsumerState
from services.gateway.sessions.session import Session
from services.gateway.vocabulary import MANAGEMENT, Kind, Publish
from services.rpc import mgmt_pb2 as pb

if TYPE_CHECKING:
    from services.gateway.sessions.client import Client

log = structlog.get_logger()

_AT_ONCE: Final = 8  # requests of all clients that mgmt has
_LAST_ONES: Final = 2.0  # seconds for those that were taken, when the gateway stops
_SECONDS: Final = 60.0  # for one line of the log
_DO: Final = "see why mgmt does not answer (hopline health); who asks for something and is gone is dropped by itself"
_TOO_MUCH: Final = "a user has more requests to management nodes than there is room for"

_LONGEST: Final = 1000  # characters of a description: a header has to fit into a frame

STATUS: Final = "statusCode"
DESCRIPTION: Final = "statusDescription"


class Reply(NamedTuple):
    """As mgmt answers; `body` None: none."""

    status: int
    description: str
    body: Any = None


class Desk:
    """Of one gateway."""

    def __init__(self, connect: Callable[[], MgmtClient]) -> None:
        """`connect` is called when something is asked for."""
        self._connect = connect
        self._mgmt: MgmtClient | None = None
        self._lines: dict[Client, Line] = {}
        self._without_turn: dict[Client, asyncio.Task[None]] = {}  # of lines: who waits for others
        self._room = Room()
        self._few = FewLines(1, _SECONDS)
        # Weakly: a consumer leads to its client, and both would stay for ever.
        self._replies: WeakKeyDictionary[Client, dict[str, tuple[str, ref[Consumer]]]] = WeakKeyDictionary()
        self._at_once = FairSlots(_AT_ONCE, 0, shares=True)
        self._tasks = Tasks()

    async def stop(self) -> None:
        """Gives those that were taken a moment."""
        await self._tasks.finish(_LAST_ONES)
        if self._mgmt:
            await self._mgmt.close()

    # -------------------------------------------------------------- what is asked for

    def take(self, client: Client, request: Publish, indexes: Sequence[int]) -> list[int]:
        """Those of a request that it takes: not more than there is room for, nor what cannot be read."""
        if is_over(client):
            return []
        size = sum(len(request.properties[index]) + len(request.bodies[index]) for index in indexes)
        # Once for all that was read: it looks at every line.
        if client not in self._lines or not self._room.has_for(_user_of(client), len(indexes), size):
            self._sweep()
        return [index for index in indexes if self._take(client, request, index)]

    def _take(self, client: Client, request: Publish, index: int) -> bool:
        name, properties = request.kinds[index].facts.format, request.properties[index]
        if (form := form_of(name)) is None:
            return False
        try:
            requester = form.requester(properties)
        except SyntaxFault:
            return False
        return self._queue(client, waiting_of(name, form, requester, properties, request.bodies[index]))

    def _queue(self, client: Client, waiting: Waiting) -> bool:
        line = self._lines.get(client) or Line(self._room, _user_of(client))
        if not line.add(waiting):
            if not self._room.has_for(line.whose, 1, waiting.weight):
                self._few.say(log.warning, _TOO_MUCH, user=client.permitted.who.name, do=_DO)
            return False
        if client not in self._lines:
            self._lines[client] = line
            serving = self._tasks.start(self._serve(client, line), name=f"manage for {client.name}")
            self._without_turn[client] = serving
        return True

    def _sweep(self) -> None:
        """Drops what waits of connections that are gone."""
        gone = [client for client in self._lines if is_over(client)]
        dropped = sum(self._lines[client].clear() for client in gone)
        for client in gone:
            if serving := self._without_turn.pop(client, None):
                serving.cancel()
                del self._lines[client]
        if dropped:
            log.info("requests to management nodes are dropped", connections=len(gone), requests=dropped)

    async def _serve(self, client: Client, line: Line) -> None:
        serving = self._without_turn[client]
        try:
            while line.waiting:
                self._without_turn[client] = serving
                async with self._at_once.slot(line.whose, good=True):
                    del self._without_turn[client]
                    waiting = self._next(client, line)
                    reply = await self._answer(client, waiting) if waiting else None
                if waiting and reply:
                    await self._tell(client, waiting, reply)
                    line.done(waiting)
        finally:
            self._lines.pop(client, None)

    def _next(self, client: Client, line: Line) -> Waiting | None:
        """None where all that waits is dropped. Who asks for one thing, and says goodbye at once, has asked for it."""
        if is_over(client) or (line.begun and not waits(client)):
            log.info("requests to a management node are dropped", connection=client.name, requests=line.clear())
            return None
        return line.next()

    async def _answer(self, client: Client, waiting: Waiting) -> Reply:
        if waiting.too_large:
            return Reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has no more than {LARGEST} bytes")
        try:
            headers, body = waiting.form.said(waiting.properties, waiting.body)
            said = json.dumps({"properties": headers, "body": body}).encode()
            return await self._ask(client, said)
        except SyntaxFault as error:
            return Reply(HTTPStatus.BAD_REQUEST, error.text)
        except Unavailable as error:
            return Reply(HTTPStatus.SERVICE_UNAVAILABLE, f"management is away; try again ({error.text})")
        except Exception as fault:  # noqa: BLE001 - this request's, whatever it is
            return Reply(HTTPStatus.INTERNAL_SERVER_ERROR, contained("a request to a management node", fault).text)

    async def _ask(self, client: Client, said: bytes) -> Reply:
        who, host = client.permitted.who, client.permitted.host
        act_for(f"{who.name} ({who.provider}) from {client.peer}, over AMQP")
        signed_in = pb.SignedIn(name=who.name, provider=who.provider, groups=who.groups, tags=who.tags, host=host)
        self._mgmt = self._mgmt or self._connect()
        asked = pb.ManageRequest(virtual_host=client.virtual_host, who=signed_in, request=said, publishes=True)
        reply = await self._mgmt.manage(asked)
        told = Reply(reply.status, reply.description, json.loads(reply.body) if reply.body else None)
        return await _published(client, reply.publish, told) if reply.HasField("publish") else told

    # -------------------------------------------------------------- what is answered

    def expect(self, client: Client, address: str, queue: str, consumer: Consumer) -> None:
        """Replies to an address go to a consumer of the same connection, as long as there is one."""
        known = self._replies.setdefault(client, {})
        for gone in [name for name, (_, each) in known.items() if not _is_there(each)]:
            del known[gone]
        known[address] = queue, ref(consumer)

    async def _tell(self, client: Client, waiting: Waiting, reply: Reply) -> None:
        to = waiting.requester
        if client.lost or to.reply_to in {"", MANAGEMENT}:
            return
        try:
            await self._publish(client, waiting, reply)
        except BrokerError as error:
            log.info("a reply is not published", connection=client.name, address=to.reply_to, reason=error.text)
        except Exception as fault:  # noqa: BLE001 - this reply's, whatever it is
            contained("a reply of a management node", fault)

    async def _publish(self, client: Client, waiting: Waiting, reply: Reply) -> None:
        exchange, key = self._address(client, waiting.requester)
        properties, body = _written(waiting, reply)
        attributes = format_named(waiting.format).attributes(properties)
        kind = Kind(facts_of(client.virtual_host, exchange, key, waiting.format, attributes), attributes)
        session = Session(0, client)  # of its own: what the client's have of confirms and transactions is theirs
        try:
            if work := publish(session, Publish(0, [kind], [properties], [body])):
                await work
        finally:
            session.close()

    def _address(self, client: Client, to: Requester) -> tuple[str, str]:
        """A consumer's; a queue's name; else an exchange and a key, as in Broker-J."""
        queue, consumer = self._replies.get(client, {}).get(to.reply_to, ("", None))
        if consumer and _is_there(consumer):
            return "", queue
        exchange, slash, key = to.reply_to.partition("/")
        if not slash or SlotName(client.virtual_host, to.reply_to) in client.broker.topology.by_name:
            return "", to.reply_to
        return exchange, key


async def _published(client: Client, asked: pb.ByHand, told: Reply) -> Reply:
    """What is answered once a message is published: 0 where no queue has it."""
    try:
        return told if await publish_by_hand(client, asked) else told._replace(body=0)
    except BrokerError as error:
        refused = HTTPStatus.INTERNAL_SERVER_ERROR
        return Reply(of_kind(_REFUSED, error, refused), error.text)


_REFUSED: Final[Mapping[type[BrokerError], int]] = {
    AccessRefused: HTTPStatus.FORBIDDEN,
    NotFound: HTTPStatus.NOT_FOUND,
    PreconditionFailed: HTTPStatus.CONFLICT,
    SyntaxFault: HTTPStatus.BAD_REQUEST,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""Statuses of what a message is refused with."""


def _user_of(client: Client) -> str:
    who = client.permitted.who
    return f"{who.provider}\0{who.name}"


def _is_there(consumer: ref[Consumer]) -> bool:
    found = consumer()
    return found is not None and found.state is not ConsumerState.ENDED


def _written(waiting: Waiting, reply: Reply) -> tuple[bytes, bytes]:
    """Of one that its format cannot hold, why: who asks would wait for ever."""
    try:
        return _form(waiting, reply)
    except (SyntaxFault, RecursionError) as fault:
        why = f"there is an answer, but it cannot be written in {waiting.format}: {fault}"
        return _form(waiting, Reply(HTTPStatus.INTERNAL_SERVER_ERROR, why))


def _form(waiting: Waiting, reply: Reply) -> tuple[bytes, bytes]:
    headers = {STATUS: int(reply.status), DESCRIPTION: reply.description[:_LONGEST]}
    return waiting.form.reply(waiting.requester, headers, reply.body)


def desk(address: str) -> Desk:
    """For a gateway that finds mgmt at an address."""
    return Desk(partial(MgmtClient, address))
