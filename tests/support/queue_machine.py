"""A queue without a process around it: publish, consume and look at what came out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from services.common import plugins
from services.queue.arrival import Arrival
from services.queue.consumers import Consumer
from services.queue.context import QueueContext
from services.queue.deliveries import Deliveries
from services.queue.entry import Holder
from services.queue.journal_draft import ContentDraft, PartitionDraft
from services.queue.message import MemoryAccount, Run
from services.queue.options import read_options
from services.queue.queue_type import Queue
from services.rpc import queue_pb2 as pb

PLENTY = 1 << 40
PROPERTIES = b"\x00\x00"


def nothing() -> None: ...


class FakeLink(Holder):
    """Keeps what is delivered, as (consumer, uid, redelivered)."""

    def __init__(self, origin: int = 0) -> None:
        super().__init__(origin)
        self.deliveries = Deliveries(nothing)
        self.cancelled: list[tuple[int, int]] = []

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
        self, kind: str = "classic", *, durable: bool = False, auto_delete: bool = False, **arguments: Any
    ) -> None:
        table = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
        options = read_options(1, "/", "q", 0, table, durable=durable, auto_delete=auto_delete)
        self.account = MemoryAccount()
        self.draft = PartitionDraft(nothing)
        self.context = QueueContext(self.account, self.draft, nothing)
        policy = plugins.load("overflow_policies", options.overflow)()
        self.queue: Queue = plugins.load("queue_types", kind)(options, self.context, policy, 0)
        self.link = FakeLink()
        self.contents: list[ContentDraft] = []
        self._uid = 0
        self._handle = 0
        self._batch = 0

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
        """A run of `count` messages with the next uids, from 1; gives the refusals."""
        uids = range(self._uid + 1, self._uid + count + 1)
        self._uid += count
        run = Run("/", "amq.direct", "key", "amqp-0-9", persistent, priority, ttl_ms)
        content = ContentDraft(self._take_id)
        self.contents.append(content)
        arrival = Arrival(run, list(uids), (), [body] * count, now, content, 0, PROPERTIES, immediate)
        return self.queue.publish(arrival, now)

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
        letters, self.context.dead_letters = self.context.dead_letters, []
        return [(letter.entry.message.uid, letter.reason) for letter in letters]

    def _take_id(self) -> int:
        self._batch += 1
        return self._batch


Make = Callable[..., Machine]
