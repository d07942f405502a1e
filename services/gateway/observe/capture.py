"""Messages that a rule wants with properties and body: taken as they are published, or sent to consumers.

Without a rule, `on` is False, and nothing else is asked. What is taken is bounded by each rule, and by what the
bus has room for; what is left out is counted. A message is captured once for each place, by the first rule with room.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import structlog

from services.common.capture.rules import Rule
from services.common.clock import epoch_ms, epoch_ns
from services.common.containment import contained
from services.common.errors import BrokerError
from services.common.ledger.captures import OFF, Captures
from services.gateway.observe.capture_room import Claims, Store, Taking
from services.gateway.rules import followed
from services.rpc import ledger_pb2, store_pb2

if TYPE_CHECKING:
    from services.common.ledger.place import LedgerPlace
    from services.common.message.facts import Facts
    from services.gateway.observe.client import Client
    from services.gateway.vocabulary import Publish

log = structlog.get_logger()

_BESIDE = 128  # bytes of a captured message beside properties and body, about
_FACTS = attrgetter("facts")
_EVERY = 2.0  # seconds in which it is told what was left out
_PACE = 0.05  # seconds between claims

_Message: TypeAlias = "tuple[int, Facts, bytes, bytes]"


class _Where(NamedTuple):
    """What befalls messages, and who is at the other end."""

    stage: ledger_pb2.Stage.ValueType
    client: Client
    queue: str = ""
    consumer: str = ""

    @property
    def who(self) -> tuple[str, str, tuple[str, ...]]:
        client = self.client
        return client.virtual_host, self.queue, (client.client, client.user, client.name)


class Capture:
    """One for all connections of a gateway. `on`: there is a rule whose time is not over."""

    def __init__(self, captures: Captures = OFF, now_ms: Callable[[], int] = epoch_ms) -> None:
        self.on = False
        self._captures = captures
        self._now_ms = now_ms
        self._of_publishes: list[Taking] = []
        self._of_deliveries: list[Taking] = []
        self._all: dict[str, Taking] = {}
        self._ends = 0  # the first of those at work, Unix ms
        self._news = asyncio.Event()
        self._wanted = asyncio.Event()

    # -------------------------------------------------------------- rules

    async def follow(self, records: AsyncIterator[store_pb2.Records]) -> None:
        """Applies a watch of the records of kind `capture_rule`; ends with it."""
        async for rules in followed(records, Rule.from_json, "capture"):
            self.set_rules(rules)

    def set_rules(self, rules: Iterable[Rule]) -> None:
        """These and no others from now on; one that was there before goes on counting."""
        named = {rule.name: rule for rule in sorted(rules, key=lambda rule: rule.name)}
        known = {name: taking for name, taking in self._all.items() if taking.rule == named.get(name)}
        self._all = {name: known.get(name) or Taking(rule) for name, rule in named.items()}
        self._sort()
        self._news.set()

    def _sort(self) -> None:
        """Those whose time is over are not asked any more."""
        now = self._now_ms()
        current = [taking for taking in self._all.values() if self._captures.on and now < taking.rule.until_ms]
        self._of_deliveries = [taking for taking in current if taking.rule.queue is not None]
        self._of_publishes = [taking for taking in current if taking.rule.queue is None]
        self._ends = min((taking.rule.until_ms for taking in current), default=0)
        self.on = bool(current)

    # -------------------------------------------------------------- messages

    def published(self, client: Client, request: Publish, uids: Sequence[int]) -> None:
        """A client has published these."""
        facts = map(_FACTS, request.kinds)
        where = _Where(ledger_pb2.RECEIVED, client)
        self._take(where, self._of_publishes, zip(uids, facts, request.properties, request.bodies, strict=True))

    def sent(
        self,
        client: Client,
        place: LedgerPlace,
        uids: Sequence[int],
        columns: tuple[Sequence[Facts], Sequence[bytes], Sequence[bytes]],
    ) -> None:
        """Messages were written to a client; `columns` are facts, properties and bodies."""
        where = _Where(ledger_pb2.SENT, client, place.queue, place.consumer)
        self._take(where, self._of_deliveries, zip(uids, *columns, strict=True))

    def _take(self, where: _Where, those: list[Taking], messages: Iterable[_Message]) -> None:
        try:
            now = self._now_ms()
            about = [each for each in those if now < each.rule.until_ms and each.rule.is_about(*where.who)]
            if about:
                self._take_each(where, messages, about)
            if now >= self._ends:
                self._sort()
        except Exception as fault:  # noqa: BLE001 - who looks on must not be in the way
            contained("capturing messages", fault, connection=where.client.name)

    def _take_each(self, where: _Where, messages: Iterable[_Message], about: list[Taking]) -> None:
        matching: dict[tuple[str, str], list[Taking]] = {}
        for message in messages:
            address = message[1].exchange, message[1].routing_key
            fitting = matching.get(address)
            if fitting is None:
                fitting = matching[address] = [each for each in about if each.rule.matches(*address)]
            if fitting:
                self._put(where, message, fitting)

    def _put(self, where: _Where, message: _Message, fitting: list[Taking]) -> None:
        self._news.set()
        sizes = ((each, _size(message, each.rule)) for each in fitting)
        taking, size = next(((each, size) for each, size in sizes if each.has_room(size)), (None, 0))
        if taking is None:
            fitting[0].leave_out()
        else:
            taking.want(_told(where, message, taking.rule), size)
            self._wanted.set()

    # -------------------------------------------------------------- what it costs

    async def report(self, instance: str, store: Store) -> None:
        """Claims what is taken, and tells what each rule has cost, until it is cancelled."""
        claims = Claims(instance, store)
        while True:
            await self._changed()
            try:
                await self._settle(claims)
            except BrokerError as error:
                log.debug("cost of capture not told", reason=error.text)
                self._news.set()
            except Exception as fault:  # noqa: BLE001 - of one message; those behind it go on
                contained("capturing messages", fault)
            if self._waits():
                self._wanted.set()
            await asyncio.sleep(_PACE)

    async def _settle(self, claims: Claims) -> None:
        if self._waits():
            self._news.set()  # what it has cost is to be told when it is taken
        if self._all:
            await claims.settle(list(self._all.values()), self._now_ms(), self._captures.put)

    async def _changed(self) -> None:
        """Something waits, or there is something to tell, which has time."""
        await self._news.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_EVERY):
                await self._wanted.wait()
        self._news.clear()
        self._wanted.clear()

    def _waits(self) -> bool:
        return any(taking.waits for taking in self._all.values())


def _size(message: _Message, rule: Rule) -> int:
    return _BESIDE + len(message[2]) + min(len(message[3]), rule.body)


def _told(where: _Where, message: _Message, rule: Rule) -> ledger_pb2.Captured:
    uid, facts, properties, body = message
    client = where.client
    place = ledger_pb2.Place(
        virtual_host=client.virtual_host,
        exchange=facts.exchange,
        routing_key=facts.routing_key,
        queue=where.queue,
        connection=client.name,
        client=client.client,
        consumer=where.consumer,
    )
    return ledger_pb2.Captured(
        time_us=epoch_ns() // 1000,
        stage=where.stage,
        place=place,
        uid=uid,
        rule=rule.name,
        format=facts.format,
        properties=bytes(properties),
        body=bytes(body[: rule.body]),
        size=len(body),
    )
