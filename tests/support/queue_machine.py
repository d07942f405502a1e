"""A queue without a process around it: publish, consume and look at what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from services.common import plugins
from services.common.message import format_named
from services.common.message.columns import put
from services.common.message.facts import Facts
from services.queue.machine.arrival import Arrival
from services.queue.machine.columns import Columns
from services.queue.machine.consumers import Consumer
from services.queue.machine.context import QueueContext
from services.queue.machine.deliveries import Deliveries
from services.queue.machine.entry import Holder
from services.queue.machine.journal_draft import ContentDraft, PartitionDraft
from services.queue.machine.message import Interned, MemoryAccount
from services.queue.machine.options import QueueOptions, read_options
from services.queue.machine.queue import Queue
from services.rpc import queue_pb2 as pb
from tests.support.messages import PROPERTIES, facts

PLENTY = 1 << 40
AMQP_0_9 = format_named(facts("").format)


def nothing() -> None: ...


class FakeLink(Holder):
    """Keeps what is delivered, as (consumer, uid, redelivered)."""

    def __init__(self, origin: int = 0) -> None:
        super().__init__(origin)
        self.deliveries = Deliveries(nothing)
        self.cancelled: list[tuple[int, int]] = []
        self.active: list[tuple[int, int]] = []

    def activated(self, consumer: Consumer) -> None:
        self.active.append((consumer.handle, consumer.activated))

    def ended(self, consumer: Consumer, reason: pb.Reason.ValueType) -> None:
        self.cancelled.append((consumer.handle, reason))

    def taken(self) -> list[tuple[int, int, bool]]:
        """What came since the last time."""
        uids = iter(self.deliveries.uids)
        rows = [(run.consumer, next(uids), run.redelivered) for run in self.deliveries.runs for _ in range(run.count)]
        assert len(rows) == len(self.deliveries.uids) == len(self.deliveries.bodies)
        self.deliveries.reset()
        return rows

    def uids(self) -> list[int]:
        return [uid for _, uid, _ in self.taken()]


class Machine:
    """One queue of a type, with its account, journal draft and dead letters at hand."""

    def __init__(
        self,
        kind: str = "classic",
        *,
        durable: bool = False,
        auto_delete: bool = False,
        epoch: int = 1,
        unused: str = "",
        table: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        """Arguments that begin with x- by their names, others in a `table`."""
        table = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()} | dict(table or {})
        self._said = table, {"durable": durable, "auto_delete": auto_delete, "unused": unused, "kept": bool(unused)}
        options = self._options({})
        self.account = MemoryAccount()
        self.draft = PartitionDraft(nothing, count(1 << 20).__next__)
        self.context = QueueContext(self.account, self.draft, nothing, epoch=epoch)
        policy = plugins.load("overflow_policies", options.overflow)()
        self.queue = Queue(plugins.load("queue_types", kind), options, self.context, policy, 0)
        self.link = FakeLink()
        self.contents: list[ContentDraft] = []
        self._uid = 0
        self._handle = 0
        self._batch = 0

    def adopt(self, policy: Mapping[str, Any], now: int = 0) -> None:
        """Its policies say this from now on."""
        options = self._options(policy)
        self.queue.adopt(options, plugins.load("overflow_policies", options.overflow)(), now)

    def made_alone(self, now: int = 0) -> None:
        """The link is gone that has made it."""
        self._said[1]["kept"] = False
        self.adopt({}, now)

    def _options(self, policy: Mapping[str, Any]) -> QueueOptions:
        table, lasting = self._said
        return read_options(1, "/", "q", 0, table, policy, **lasting)

    def publish(
        self,
        count: int = 1,
        *,
        now: int = 0,
        body: bytes = b"body",
        persistent: bool = False,
        priority: int = 0,
        ttl_ms: int | None = None,
        immediate: bool = False,
    ) -> list[tuple[int, int, int]]:
        """`count` messages with the next uids, from 1; gives the refusals."""
        its = facts("amq.direct", persistent=persistent, priority=priority, ttl_ms=ttl_ms)
        return self.publish_mixed([its] * count, now=now, body=body, immediate=immediate)

    def publish_mixed(
        self,
        mixed: Sequence[Facts],
        *,
        now: int = 0,
        body: bytes = b"body",
        immediate: bool = False,
        properties: Sequence[bytes] = (),
        letters: Sequence[tuple[int, int]] = (),
    ) -> list[tuple[int, int, int]]:
        """A message of each of these facts, with the next uids; gives the refusals.

        `letters`: queue and uid of the entry of which each is the dead letter; clients have published them else.
        """
        arrival = self.arrival(mixed, properties, letters, now=now, body=body, immediate=immediate)
        return self.queue.publish(arrival, now)

    def arrival(
        self, mixed: Sequence[Facts], properties: Sequence[bytes] = (), letters: Sequence[tuple[int, int]] = (), *,
        now: int = 0, body: bytes = b"body", immediate: bool = False,
    ) -> Arrival:  # fmt: skip
        """The same as they come, with the next uids."""
        count = len(mixed)
        batch = pb.PublishBatch(uids=range(self._uid + 1, self._uid + count + 1), bodies=[body] * count, time_ms=now)
        put(batch, mixed, properties or [PROPERTIES] * count)
        batch.letter_queues.extend([queue_id for queue_id, _ in letters])
        batch.letter_uids.extend([uid for _, uid in letters])
        self._uid += count
        content = ContentDraft(self._take_id)
        self.contents.append(content)
        columns = Columns(batch, list(batch.bodies), Interned(), published=not letters)
        return Arrival(columns, range(count), now, content, immediate=immediate)

    def publish_with(self, header: str, *values: object, **said: Any) -> None:
        """A message for each value of a header; None: without it."""
        self.publish_headers([{} if value is None else {header: value} for value in values], **said)

    def publish_headers(self, headers: Iterable[Mapping[str, Any]], **said: Any) -> None:
        """A message with each of these, of which facts are `said`."""
        properties = [AMQP_0_9.with_headers(PROPERTIES, each) for each in headers]
        self.publish_mixed([facts("amq.direct", **said)] * len(properties), properties=properties)

    def consumer(
        self, *, messages: int = 1 << 30, size: int = PLENTY, again: bool = False, now: int = 0, **more: Any
    ) -> Consumer:
        """Attached, and sent what it may be sent."""
        self._handle += 1
        held = more.pop("held", ())
        consumer = Consumer(self._handle, more.pop("link", self.link), messages=messages, size=size, **more)
        self.reason = self.queue.attach(consumer, held, now, again=again)
        self.queue.dispatch(now)
        return consumer

    def dead(self) -> list[tuple[int, str]]:
        """(uid, reason) of what was buried since the last time."""
        dead = [(letter.entry.message.uid, letter.reason) for letter in self.context.dead_letters]
        self.context.dead_letters.clear()
        return dead

    def _take_id(self) -> int:
        self._batch += 1
        return self._batch


Make = Callable[..., Machine]
