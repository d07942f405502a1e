from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from services.common.telemetry.context import new_root
from services.common.telemetry.conventions import SPANS_DROPPED, Kind
from services.common.telemetry.export import ExportQueue
from services.common.telemetry.span import Span


class Collector:
    """Takes spans, unless it is stuck or broken."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.flowing = threading.Event()
        self.flowing.set()
        self.broken = False
        self.closed = False

    def export(self, spans: Sequence[Span]) -> None:
        self.flowing.wait(60)
        if self.broken:
            raise OSError("nowhere to write")
        self.spans += spans

    def close(self) -> None:
        self.closed = True


def span(number: int = 0) -> Span:
    return Span(f"span {number}", Kind.INTERNAL, new_root(), end_ns=1)


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_exports() -> None:
    """What is added leaves in its order, and nothing of it is lost when the process stops."""
    collector = Collector()
    queue = ExportQueue(lambda: collector, capacity=1000, batch=10, delay=0.01)
    for number in range(100):
        queue.add(span(number))
    queue.stop(5)
    assert [each.name for each in collector.spans] == [f"span {number}" for number in range(100)]
    assert (queue.ended, queue.exported, queue.dropped) == (100, 100, 0)
    assert collector.closed


def test_nothing_without_spans() -> None:
    """A process that makes no span has neither a thread nor an exporter."""
    made: list[int] = []
    queue = ExportQueue(lambda: made.append(1) or Collector(), capacity=10, batch=10, delay=0.01)
    threads = threading.active_count()
    queue.stop(1)
    assert not made
    assert threading.active_count() == threads


def test_stuck() -> None:
    """While the exporter is stuck nothing waits for it: spans that do not fit are dropped, counted, and told later."""
    collector = Collector()
    queue = ExportQueue(lambda: collector, capacity=10, batch=5, delay=0.001)
    collector.flowing.clear()
    queue.add(span())
    wait_until(lambda: not queue._spans)  # the thread has it, and hangs
    for _ in range(30):
        queue.add(span())
    assert not collector.spans  # it still hangs
    assert (queue.ended, queue.dropped) == (31, 20)
    collector.flowing.set()
    wait_until(lambda: queue.exported == 11)
    assert sum(each.attributes.get(SPANS_DROPPED, 0) for each in collector.spans) == 20
    queue.stop(1)


def test_broken() -> None:
    """What an exporter fails with is counted as dropped, and the next spans are tried again."""
    collector = Collector()
    collector.broken = True
    queue = ExportQueue(lambda: collector, capacity=10, batch=5, delay=0.001)
    queue.add(span())
    wait_until(lambda: queue.dropped == 1)
    collector.broken = False
    queue.add(span())
    wait_until(lambda: queue.exported == 1)
    assert collector.spans[0].attributes == {SPANS_DROPPED: 1}
    queue.stop(1)


def test_cannot_be_made() -> None:
    """An exporter that cannot be made is tried again with the next spans."""
    collectors: list[Collector] = []

    def create() -> Collector:
        collectors.append(Collector())
        if len(collectors) == 1:
            raise ImportError("no SDK")
        return collectors[-1]

    queue = ExportQueue(create, capacity=10, batch=5, delay=0.001)
    queue.add(span())
    wait_until(lambda: queue.dropped == 1)
    queue.add(span())
    wait_until(lambda: queue.exported == 1)
    queue.stop(1)


def test_stops_in_time() -> None:
    """A process that stops waits only so long for an exporter that is stuck; what is left is counted."""
    collector = Collector()
    collector.flowing.clear()
    queue = ExportQueue(lambda: collector, capacity=10, batch=1, delay=0.001)
    for _ in range(5):
        queue.add(span())
    queue.stop(0.05)
    assert not collector.spans  # it still hangs
    assert queue.dropped == 4
    collector.flowing.set()
