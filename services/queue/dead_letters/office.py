"""Sends dead letters on: routes them in batches, publishes them, and only then lets go of their source entries.

None is lost: the source entry is kept, on disk too, until every target queue has the message. If this process dies
before, the next owner sends it again, and targets know by the entry which letter that is: each takes it once. A full
queue is tried again, less and less often; if a queue is gone the router is asked again. A letter that no queue can
receive (no such exchange, no route, only cycles) is dropped, as in RabbitMQ.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog

from services.common.clients.outbound import Messages, Refused, Targets, Ticket
from services.common.clients.pressure import Congestion, Pressure
from services.common.containment import contained, for_each
from services.common.errors import Unavailable
from services.common.ledger.recorder import OFF, Recorder
from services.common.ledger.stages import UNROUTABLE
from services.common.remedies import ROUTER
from services.common.runtime import Tasks
from services.common.topology.slots import SlotId, first_slots
from services.common.uid import UidSource
from services.queue.dead_letters.letter import OpenLetter, exchange_of, facts_of, letter_of, sources_of
from services.queue.dead_letters.portion import some_of
from services.queue.dead_letters.record import DeadLetterRecord
from services.queue.machine.context import DeadLetter
from services.queue.machine.dead_letter import is_circle, rewrite, routing_keys
from services.queue.machine.features.sent_on import note_of
from services.queue.partitions.partition import Partition, PartitionState
from services.queue.partitions.registry import Registry
from services.rpc.router_pb2 import Message, Routed, RouteReply

log = structlog.get_logger()

_WRITES = (PartitionState.SERVING, PartitionState.LEAVING)
_AT_ONCE = 1000
_OPEN_AT_ONCE = 500  # writing x-death takes long, and any number of letters may come in one turn
_UNDER_WAY = 4000  # letters without an answer yet
_RETRY_SECONDS = 0.5
_DO = "they stay in their queue and are tried again; if it stays so, report it with these lines"
_NO_ROUTE = "bind a queue to the dead-letter exchange, or name another one in a policy"
_AS_IT_WAS = "it is sent on without x-death: report it with these lines"
_FIRST_BACKOFF = 0.1
_LONGEST_BACKOFF = 5.0
_FEW = 5000  # letters without a way: more of them are asked about the more seldom


class Routes(Protocol):
    """The part of the router's client that routes."""

    def route(self, messages: list[Message]) -> Awaitable[RouteReply]: ...


class Publications(Protocol):
    """The publisher."""

    @property
    def uids(self) -> UidSource: ...

    def publish(self, messages: Messages, ticket: Ticket) -> Pressure | None: ...

    def when_relieved(self, pressure: Pressure, who: object, callback: Callable[[], None]) -> None: ...


@dataclass(slots=True)
class _Sent:
    """Waits for the targets of some letters; the publisher finds owners by itself."""

    office: DeadLetterOffice
    addressed: list[tuple[OpenLetter, Targets]]

    def settled(self, numbers: Sequence[int], refusals: list[Refused]) -> None:
        self.office.answered({number: self.addressed[number] for number in numbers}, refusals)


class DeadLetterOffice:
    """One for each process; letters are collected from the partitions' contexts."""

    def __init__(
        self,
        registry: Registry,
        routes: Routes,
        publisher: Publications,
        tasks: Tasks,
        until_certain: Callable[[], Awaitable[None]],
        recorder: Recorder = OFF,
    ) -> None:
        """`until_certain` returns when it is known which partitions this process owns."""
        self._registry = registry
        self._record = DeadLetterRecord(recorder, registry)
        self._routes = routes
        self._until_certain = until_certain
        self._publisher = publisher
        self._waiting: deque[OpenLetter] = deque()
        self._again: deque[OpenLetter] = deque()  # in turns with the others, which they must not hold up
        self._open: dict[Partition, dict[OpenLetter, None]] = {}
        self._under_way = 0
        self._full = False
        self._room = asyncio.Event()
        self._partitions: dict[Partition, None] = {}
        self._more = asyncio.Event()
        self._tasks = tasks

    def start(self) -> None:
        """Begins to send."""
        self._tasks.start(self._run(), "dead letters")

    def collect_from(self, partition: Partition) -> None:
        """The partition's context has dead letters."""
        self._partitions[partition] = None
        self._more.set()

    def sends(self, partition: Partition) -> bool:
        """Whether letters of the partition are in their first attempt, or wait for it."""
        letters = self._open.get(partition, ())
        return bool(partition.context.dead_letters) or any(not letter.tries for letter in letters)

    def letters_of(self, partition: Partition) -> list[DeadLetter]:
        """All letters of the partition that are not done with."""
        return [*(letter.letter for letter in self._open.get(partition, ())), *partition.context.dead_letters]

    def answered(self, addressed: Mapping[int, tuple[OpenLetter, Targets]], refusals: list[Refused]) -> None:
        """Every target queue of some letters took them, or refused them."""
        self._under_way -= len(addressed)
        self._room.set()
        refused: dict[int, set[SlotId]] = {}
        for numbers, queue_id, _ in refusals:
            for number in numbers:
                refused.setdefault(number, set()).add(queue_id)
        for number, (letter, targets) in addressed.items():
            if number not in refused:
                self._let_go(letter)
                continue
            letter.tries += 1
            if took := frozenset(targets) - refused[number]:
                self._note(letter, took)
        if again := [letter for number, (letter, _) in addressed.items() if number in refused]:
            self._later(again)

    def _note(self, letter: OpenLetter, took: AbstractSet[SlotId]) -> None:
        """Some targets have it: if this process dies, the next owner is to send it to the others alone."""
        letter.taken |= took
        its, partition = letter.letter, letter.partition
        if its.entry.part is None or partition.state not in _WRITES:
            return
        draft, former = partition.context.draft, letter.place
        letter.place = draft.note(note_of(its.queue.queue_id, its.entry.message.uid, letter.taken))
        if former:
            draft.drop_notes([former])

    def _later(self, letters: list[OpenLetter], patience: float = 1) -> None:
        backoff = min(_FIRST_BACKOFF * 2 ** min(letters[0].tries - 1, 10), _LONGEST_BACKOFF)
        asyncio.get_running_loop().call_later(backoff * patience, self._try_again, letters)

    def _try_again(self, letters: list[OpenLetter]) -> None:
        self._again.extend(letters)
        self._more.set()

    async def _run(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            while self._waiting or self._again or self._partitions:
                while self._full or self._under_way >= _UNDER_WAY:
                    self._room.clear()
                    await self._room.wait()
                self._open_some()
                await asyncio.sleep(0)
                for line in (self._waiting, self._again):
                    if line:
                        await self._send_some([letter for letter in some_of(line, _AT_ONCE) if self._may_send(letter)])

    async def _send_some(self, letters: list[OpenLetter]) -> None:
        """Sends letters; one that cannot be sent stays in its queue and is tried again later, the others go."""
        if not letters:
            return
        try:
            await self._send(letters)
        except Exception as fault:  # noqa: BLE001 - one letter's
            if len(letters) > 1:
                for letter in letters:
                    await self._send_some([letter])
            else:
                self._keep(letters, fault)

    def _keep(self, letters: list[OpenLetter], fault: Exception) -> None:
        contained("sending dead letters on", fault, do=_DO, queue=letters[0].letter.queue.name)
        for letter in letters:
            letter.tries += 1
        self._later(letters)

    def _may_send(self, letter: OpenLetter) -> bool:
        """Whether this process still owns the letter: else the next owner finds it in the queue, and sends it."""
        if letter.partition.state in (PartitionState.WRITTEN, PartitionState.GONE):
            self._let_go(letter)
            return False
        return True

    def _open_some(self) -> None:
        """Opens letters of one partition after the other, a limited number each turn; the others wait."""
        room = min(_OPEN_AT_ONCE, _AT_ONCE - len(self._waiting))
        while self._partitions and room > 0:
            partition = next(iter(self._partitions))
            del self._partitions[partition]
            letters = partition.context.dead_letters
            some = [letters.popleft() for _ in range(min(room, len(letters)))]
            for_each("opening a dead letter", some, partial(self._open_letter, partition))
            room -= len(some)
            if letters:
                self._partitions[partition] = None

    def _open_letter(self, partition: Partition, letter: DeadLetter) -> None:
        opened = OpenLetter(letter, partition, taken=letter.sent.taken, place=letter.sent.place)
        self._open.setdefault(partition, {})[opened] = None
        if not self._may_send(opened):
            return
        try:
            opened.properties, opened.headers = rewrite(letter)
        except Exception as fault:  # noqa: BLE001 - better sent as it was than not at all
            contained("describing a dead letter's way", fault, do=_AS_IT_WAS, queue=letter.queue.name)
            opened.properties, opened.headers = letter.entry.message.properties, {}
        opened.keys = routing_keys(letter, opened.headers)
        self._waiting.append(opened)

    def _let_go(self, letter: OpenLetter) -> None:
        """The entry is done with, on disk too if this process still owns the partition."""
        partition = letter.partition
        of_partition = self._open.get(partition, {})
        of_partition.pop(letter, None)
        if not of_partition:
            self._open.pop(partition, None)
        entry = letter.letter.entry
        if (journeys := partition.journeys) is not None and journeys.live:
            journeys.gone(entry.message.uid, letter.letter.queue.queue_id)
        durable = entry.part is not None and partition.state in _WRITES
        partition.context.sent(letter.letter, letter.place, durable=durable)

    async def _send(self, letters: list[OpenLetter]) -> None:
        questions = [
            Message(
                virtual_host=letter.letter.queue.virtual_host,
                exchange=letter.letter.queue.dead_letter_exchange or "",
                routing_key=letter.keys[0],
                more_keys=letter.keys[1:],
                format=letter.letter.entry.message.facts.format,
                properties=letter.properties,
            )
            for letter in letters
        ]
        routed = (await self._route(questions)).routed
        addressed = [(letter, self._targets(letter, its)) for letter, its in zip(letters, routed, strict=True)]
        await self._until_certain()  # meanwhile the partition may have another owner, which sends them
        addressed = [(letter, targets) for letter, targets in addressed if self._may_send(letter)]
        self._nowhere([letter for letter, targets in addressed if not targets])
        if going := [(letter, targets) for letter, targets in addressed if targets]:
            self._publish_all(going)

    async def _route(self, questions: list[Message]) -> RouteReply:
        while True:
            try:
                return await self._routes.route(questions)
            except Unavailable as failure:
                log.warning("dead letters wait for the router", reason=failure.text, do=ROUTER)
                await asyncio.sleep(_RETRY_SECONDS)

    def _targets(self, letter: OpenLetter, routed: Routed) -> Targets:
        return tuple(
            queue_id
            for queue_id in first_slots(routed.queue_ids)
            if queue_id not in letter.taken and not self._is_circle(letter, queue_id)
        )

    def _nowhere(self, letters: list[OpenLetter]) -> None:
        """No queue can receive these: they are dropped, or wait until one can, as their queue's strategy is."""
        kept = {letter: None for letter in letters if self._keeps(letter)}
        self._drop([letter for letter in letters if letter not in kept])
        if fresh := [letter for letter in kept if not letter.tries]:
            log.warning("dead letters wait for a route", queue=fresh[0].letter.queue.name, do=_NO_ROUTE)
        for letter in kept:
            letter.tries += 1
        if kept:
            # Many that nobody can take are asked about seldom.
            self._later(list(kept), max(1, sum(map(len, self._open.values())) / _FEW))

    def _keeps(self, letter: OpenLetter) -> bool:
        """Whether one waits for a route: by what its queue's policies say now, which may send it elsewhere."""
        definition = self._registry.definitions.get(letter.letter.queue.queue_id)
        options = self._registry.options(definition) if definition else None
        if letter.taken or options is None or options.dead_letter_exchange is None or not options.keeps_unroutable:
            return False
        letter.letter = letter.letter._replace(queue=options)
        letter.keys = routing_keys(letter.letter, letter.headers)
        return True

    def _drop(self, letters: list[OpenLetter]) -> None:
        """Drops letters."""
        if letters:
            self._record.dropped(sources_of(letters), UNROUTABLE)
            for letter in letters:
                self._let_go(letter)

    def _publish_all(self, addressed: list[tuple[OpenLetter, Targets]]) -> None:
        try:
            self._publish(addressed)
        except Exception as fault:  # noqa: BLE001 - one letter's, and the others are sent
            if len(addressed) > 1:
                for each in addressed:
                    self._publish_all([each])
            else:
                self._keep([addressed[0][0]], fault)

    def _publish(self, addressed: list[tuple[OpenLetter, Targets]]) -> None:
        letters = [letter for letter, _ in addressed]
        messages = Messages(
            self._publisher.uids.take(len(letters)),
            [facts_of(letter) for letter in letters],
            [letter.properties for letter in letters],
            [bytes(letter.letter.entry.message.body) for letter in letters],
            [targets for _, targets in addressed],
            range(len(letters)),
            letters=dict(enumerate(map(letter_of, letters))),
        )
        self._record.sent_on(sources_of(letters), messages.uids, [letter.told for letter in letters])
        for letter in letters:
            letter.told = True
        self._record.routed(messages)
        messages.traces = self._traces(letters)
        # They are sent even to a process that is short of memory: they make room in this one.
        pressure = self._publisher.publish(messages, _Sent(self, addressed))
        self._under_way += len(letters)  # only if that did not raise: else no answer comes
        if pressure and pressure.state is Congestion.FULL:
            self._full = True
            self._publisher.when_relieved(pressure, self, self._relieved)

    def _traces(self, letters: list[OpenLetter]) -> dict[int, bytes] | None:
        """Trace contexts of traced letters, by index: the messages that they become carry them on."""
        contexts: dict[int, bytes] = {}
        for index, opened in enumerate(letters):
            journeys, letter = opened.partition.journeys, opened.letter
            if journeys is None or not journeys.live:
                continue
            uid, queue_id, exchange = letter.entry.message.uid, letter.queue.queue_id, exchange_of(letter)
            if context := journeys.moving(uid, queue_id, letter.reason, exchange, letter.time_ms):
                contexts[index] = context
        return contexts or None

    def _relieved(self) -> None:
        self._full = False
        self._room.set()

    def _is_circle(self, letter: OpenLetter, queue_id: SlotId) -> bool:
        definition = self._registry.definitions.get(queue_id)
        return definition is not None and is_circle(letter.letter, letter.headers, definition.name)
