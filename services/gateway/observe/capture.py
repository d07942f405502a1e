"""Messages that a rule wants with properties and body: taken as they are published, or sent to consumers.

Without a rule, `on` is False, and that is all that anybody asks. What is taken is bounded by each rule, and by what the
bus has room for; what is left out is counted. A message is captured once for each place, by the first rule with room.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import structlog

from services.common.capture.cost import RECORD_KIND as COST_KIND
from services.common.capture.cost import Account, Cost
from services.common.capture.rules import Rule
from services.common.clock import epoch_ms, epoch_ns
from services.common.containment import contained
from services.common.errors import BrokerError
from services.common.ledger.captures import OFF, Captures
from services.common.telemetry.status import Put
from services.gateway.rules import followed
from services.rpc import ledger_pb2, store_pb2

if TYPE_CHECKING:
    from services.common.ledger.place import Place
    from services.common.message.facts import Facts
    from services.gateway.observe.client import Client
    from services.gateway.vocabulary import Publish

log = structlog.get_logger()

_BESIDE = 128  # bytes of a captured message beside properties and body, about
_FACTS = attrgetter("facts")
_AGAIN = 60.0  # seconds
_EVERY = 2.0  # seconds between what is said of costs

_Message: TypeAlias = "tuple[int, Facts, bytes, bytes]"


@dataclass(slots=True)
class _Taking:
    """A rule at work."""

    rule: Rule
    messages: int = 0
    bytes: int = 0
    left_out: int = 0

    @property
    def cost(self) -> Cost:
        return Cost(messages=self.messages, bytes=self.bytes, left_out=self.left_out)

    def has_room(self, size: int) -> bool:
        return self.bytes + size <= self.rule.limit

    def size_of(self, message: _Message) -> int:
        return _BESIDE + len(message[2]) + min(len(message[3]), self.rule.body)


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
        self._of_publishes: list[_Taking] = []
        self._of_deliveries: list[_Taking] = []
        self._all: dict[str, _Taking] = {}
        self._ends = 0  # the first of those at work, Unix ms
        self._news = asyncio.Event()

    # -------------------------------------------------------------- rules

    async def follow(self, records: AsyncIterator[store_pb2.Records]) -> None:
        """Applies a watch of the records of kind `capture_rule`; ends with it."""
        async for rules in followed(records, Rule.from_json, "capture"):
            self.set_rules(rules)

    def set_rules(self, rules: Iterable[Rule]) -> None:
        """These and no others from now on; one that was there before goes on counting."""
        keyed = {Account.key_of(rule): rule for rule in sorted(rules, key=lambda rule: rule.name)}
        known = {key: taking for key, taking in self._all.items() if taking.rule == keyed.get(key)}
        self._all = {key: known.get(key) or _Taking(rule) for key, rule in keyed.items()}
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
        place: Place,
        uids: Sequence[int],
        columns: tuple[Sequence[Facts], Sequence[bytes], Sequence[bytes]],
    ) -> None:
        """Messages were written to a client; `columns` are facts, properties and bodies."""
        where = _Where(ledger_pb2.SENT, client, place.queue, place.consumer)
        self._take(where, self._of_deliveries, zip(uids, *columns, strict=True))

    def _take(self, where: _Where, those: list[_Taking], messages: Iterable[_Message]) -> None:
        try:
            now = self._now_ms()
            about = [each for each in those if now < each.rule.until_ms and each.rule.is_about(*where.who)]
            if about:
                self._take_each(where, messages, about)
            if now >= self._ends:
                self._sort()
        except Exception as fault:  # noqa: BLE001 - who looks on must not be in the way
            contained("capturing messages", fault, connection=where.client.name)

    def _take_each(self, where: _Where, messages: Iterable[_Message], about: list[_Taking]) -> None:
        matching: dict[tuple[str, str], list[_Taking]] = {}
        for message in messages:
            address = message[1].exchange, message[1].routing_key
            fitting = matching.get(address)
            if fitting is None:
                fitting = matching[address] = [each for each in about if each.rule.matches(*address)]
            if fitting:
                self._put(where, message, fitting)

    def _put(self, where: _Where, message: _Message, fitting: list[_Taking]) -> None:
        self._news.set()
        taking = next((each for each in fitting if each.has_room(each.size_of(message))), None)
        if taking and self._captures.put(_told(where, message, taking.rule)):
            taking.messages += 1
            taking.bytes += taking.size_of(message)
        else:
            (taking or fitting[0]).left_out += 1

    # -------------------------------------------------------------- what it costs

    async def report(self, instance: str, put: Put) -> None:
        """Tells what each rule has cost, whenever that has changed, until it is cancelled."""
        told = False
        while True:
            await self._changed()
            if told or self._all:
                told = await self._tell(instance, put) or told
                await asyncio.sleep(_EVERY)

    async def _changed(self) -> None:
        """While there are rules, once a minute at least: a store that was started anew has forgotten what it heard."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_AGAIN if self._all else None):
                await self._news.wait()
        self._news.clear()

    async def _tell(self, instance: str, put: Put) -> bool:
        costs = {key: taking.cost for key, taking in self._all.items()}
        value = Account(instance=instance, costs=costs).model_dump_json().encode()
        try:
            await put([store_pb2.Record(kind=COST_KIND, key=instance, value=value, transient=True)], [])
        except BrokerError as error:
            log.debug("cost of capture not told", reason=error.text)
            self._news.set()
            return False
        return True


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
