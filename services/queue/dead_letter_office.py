"""Sends dead letters on: routes them in batches, publishes them, and only then lets go of what they were.

At least once: the source entry stays in the journal until every queue of the target has the message. A letter that
nobody can receive (no such exchange, no route, only circles) is dropped, as in RabbitMQ.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import structlog

from services.common.clients.outbound import Refused, Run, Ticket
from services.common.errors import BrokerError
from services.common.runtime import Tasks
from services.queue.context import DeadLetter
from services.queue.dead_letter import is_circle, rewrite, routing_keys
from services.queue.message import Run as Facts
from services.queue.partition import Partition, State
from services.queue.registry import Registry
from services.rpc.router_pb2 import Message, Routed, RouteReply

log = structlog.get_logger()

_AT_ONCE = 1000
_RETRY_SECONDS = 0.5

_Address = tuple[Facts, str, str, tuple[int, ...]]  # what the messages were, exchange, routing key, queues


class Routes(Protocol):
    """The part of the router's client that routes."""

    def route(self, messages: list[Message]) -> Awaitable[RouteReply]: ...


class Publications(Protocol):
    """The publisher."""

    def publish(self, run: Run, ticket: Ticket) -> object: ...


class _Letter(NamedTuple):
    letter: DeadLetter
    partition: Partition
    properties: bytes
    headers: dict[str, Any]
    keys: list[str]


@dataclass(slots=True)
class _Sent:
    """Waits for the targets of some letters; a refusal is final, the publisher finds owners by itself."""

    letters: list[_Letter]

    def settled(self, refusals: list[Refused]) -> None:  # noqa: ARG002 - as the publisher calls it
        for letter in self.letters:
            _let_go(letter.letter, letter.partition)


class DeadLetterOffice:
    """One for each process; letters are collected from the partitions' contexts."""

    def __init__(self, registry: Registry, routes: Routes, publisher: Publications, tasks: Tasks) -> None:
        self._registry = registry
        self._routes = routes
        self._publisher = publisher
        self._waiting: list[_Letter] = []
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

    async def _run(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            self._collect()
            while self._waiting:
                some, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
                await self._send(some)

    def _collect(self) -> None:
        partitions, self._partitions = self._partitions, {}
        for partition in partitions:
            letters, partition.context.dead_letters = partition.context.dead_letters, []
            for letter in letters:
                try:
                    properties, headers = rewrite(letter)
                except BrokerError as failure:
                    log.warning("dead letter dropped: unreadable", queue=letter.queue.name, reason=failure.text)
                    _let_go(letter, partition)
                    continue
                self._waiting.append(_Letter(letter, partition, properties, headers, routing_keys(letter, headers)))

    async def _send(self, letters: list[_Letter]) -> None:
        questions = [
            Message(
                virtual_host=letter.letter.queue.virtual_host,
                exchange=letter.letter.queue.dead_letter_exchange or "",
                routing_key=key,
                format=letter.letter.entry.message.run.format,
                properties=letter.properties,
            )
            for letter in letters
            for key in letter.keys
        ]
        routed = iter((await self._route(questions)).routed)
        addressed = [(self._address(letter, [next(routed) for _ in letter.keys]), letter) for letter in letters]
        for address, group in groupby(addressed, key=itemgetter(0)):
            self._publish(address, [letter for _, letter in group])

    async def _route(self, questions: list[Message]) -> RouteReply:
        while True:
            try:
                return await self._routes.route(questions)
            except BrokerError as failure:
                log.warning("dead letters wait for the router", reason=failure.text)
                await asyncio.sleep(_RETRY_SECONDS)

    def _address(self, letter: _Letter, routed: list[Routed]) -> _Address:
        queue_ids = dict.fromkeys(queue_id for route in routed for queue_id in route.queue_ids)
        targets = tuple(queue_id for queue_id in queue_ids if not self._is_circle(letter, queue_id))
        return letter.letter.entry.message.run, letter.letter.queue.dead_letter_exchange or "", letter.keys[0], targets

    def _publish(self, address: _Address, letters: list[_Letter]) -> None:
        was, exchange, routing_key, targets = address
        if not targets:
            for letter in letters:
                _let_go(letter.letter, letter.partition)
            return
        run = Run(
            virtual_host=letters[0].letter.queue.virtual_host,
            exchange=exchange,
            routing_key=routing_key,
            queue_ids=targets,
            format=was.format,
            persistent=was.persistent,
            priority=was.priority,
            ttl_ms=None,
            immediate=False,
            properties=[letter.properties for letter in letters],
            bodies=[letter.letter.entry.message.body for letter in letters],
        )
        self._publisher.publish(run, _Sent(letters))

    def _is_circle(self, letter: _Letter, queue_id: int) -> bool:
        definition = self._registry.definitions.get(queue_id)
        return definition is not None and is_circle(letter.letter, letter.headers, definition.name)


def _let_go(letter: DeadLetter, partition: Partition) -> None:
    """The entry is done with, on disk too, as far as it is still this process's affair."""
    durable = letter.entry.part is not None and partition.state is not State.GONE
    partition.context.forget([letter.entry], durable=durable)
