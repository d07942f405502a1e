"""Messages per second, end to end: a message counts when it is consumed."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.consumer import consume
from benchmarks.counters import Counter, Counters, shared
from benchmarks.load import BODY_SIZE, Load, declared
from benchmarks.producer import produce
from benchmarks.result import Meter, Result
from benchmarks.workers import Workers, workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.brokers import Broker
    from benchmarks.wire import Address

WARM_UP_SECONDS = 1.0


def throughput(load: Load, broker: Broker, address: Address, seconds: float, name: str = "") -> Result:
    """Runs `load` for `seconds` after a warm-up; checks that exactly what was published has arrived.

    `name` is that of the exchange and queues, where the caller has to know it.
    """
    with flowing(load, address, name) as flow:
        generated, brokered = Meter(flow.generator.pids), Meter(broker.processes())
        started, before = time.monotonic(), flow.consumed
        flow.generator.sleep(seconds)
        consumed, elapsed = flow.consumed - before, time.monotonic() - started
        generated_cpu, brokered_cpu = generated.per_million(consumed), brokered.per_million(consumed)
    figures = {"messages/s": consumed / elapsed}
    if load.size > BODY_SIZE:
        figures["MB/s"] = consumed * load.size / elapsed / 1e6
    return Result(figures, generated_cpu, brokered_cpu)


@dataclass(frozen=True, slots=True)
class Flow:
    """Messages that flow."""

    generator: Workers
    counters: Counters

    @property
    def consumed(self) -> int:
        """Messages so far."""
        return self.counters[Counter.CONSUMED]


@contextmanager
def flowing(load: Load, address: Address, name: str = "") -> Iterator[Flow]:
    """`load`, warm, until the end of the block; checks then that exactly what was published has arrived."""
    counters = shared()
    with declared(address, load, name) as destination, workers() as generator:
        generator.start(consume, destination, counters)
        generator.wait_for(lambda: counters[Counter.CONSUMER_READY], "starting the consumers")
        generator.start(produce, destination, counters)
        generator.wait_for(lambda: counters[Counter.CONSUMED], "the first delivery")
        generator.sleep(WARM_UP_SECONDS)
        yield Flow(generator, counters)
        counters[Counter.STOP] = 1
        generator.join()
