"""The scenarios, by name: what each is called in the table and how it is run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from benchmarks.behaviours import BEHAVIOURS
from benchmarks.beside import BESIDE, Measure, beside
from benchmarks.connections import connections
from benchmarks.first_pass import first_pass
from benchmarks.idle import CONNECTIONS, idle
from benchmarks.latency import latency
from benchmarks.load import Load
from benchmarks.round_trip import round_trip
from benchmarks.sequential import confirm, get, transaction
from benchmarks.streams import ALTERNATING, STREAMS
from benchmarks.throughput import throughput
from benchmarks.topology import topology
from benchmarks.waiting import waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.brokers import Broker
    from benchmarks.result import Result
    from benchmarks.wire import Address

Better = Literal["more", "less"]
ACKED = Load(confirms=True, acks=True)


@dataclass(frozen=True, slots=True)
class Context:
    """What a run is given: a broker that serves, how long to measure, and the rate for latencies."""

    broker: Broker
    address: Address
    seconds: float
    rate: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """`run` measures it once. `better` says whether more or less of its figures is good.

    One that is measured `alone` gets a broker that has done nothing else, and whose processes are known.
    """

    title: str
    run: Callable[[Context], Result]
    better: Better = "less"
    alone: bool = False


def _throughput(title: str, load: Load) -> Scenario:
    return Scenario(title, partial(_run_throughput, load), "more")


def _run_throughput(load: Load, context: Context) -> Result:
    return throughput(load.on(context.broker.queue_type), context.broker, context.address, context.seconds)


def _beside(title: str, load: Load, measure: Measure) -> Scenario:
    return Scenario(
        title,
        lambda context: beside(
            load.on(context.broker.queue_type), measure, context.broker, context.address, context.seconds
        ),
    )


def _sequential(title: str, measure: Callable[[Broker, Address, float], Result]) -> Scenario:
    return Scenario(title, lambda context: measure(context.broker, context.address, context.seconds))


SPREAD = "spread"
"""Measured on Hopline alone, with few and with many queue processes."""

SCENARIOS: dict[str, Scenario] = {
    "transient": _throughput("transient, no acks", Load()),
    "acked": _throughput("transient, confirms and acks", ACKED),
    "persistent": _throughput("persistent, confirms and acks", Load(confirms=True, acks=True, persistent=True)),
    "persistent-alternating": _throughput(
        "the same, alternating: 100 keys, 10 priorities, a header and an id each another", ALTERNATING
    ),
    "fanout": _throughput(
        "fan-out to 10 queues, confirms and acks", Load(10, 1, confirms=True, acks=True, fanout=True)
    ),
    "many": _throughput("100 queues, 100 producers, 100 consumers", Load(100, 100, confirms=True, acks=True)),
    SPREAD: _throughput("64 queues, 64 producers, 64 consumers", Load(64, 64, confirms=True, acks=True)),
    **{name: _throughput(title, load) for name, (title, load) in STREAMS.items()},
    **{name: _throughput(title, load) for name, (title, load) in BEHAVIOURS.items()},
    "first-pass": Scenario(
        "1,000 keys, first pass, direct exchange", lambda context: first_pass(context.broker, context.address), "more"
    ),
    "confirm": _sequential("one confirm after the other, transient", partial(confirm, persistent=False)),
    "confirm-persistent": _sequential("one confirm after the other, persistent", partial(confirm, persistent=True)),
    "transaction": _sequential("transactions of one persistent message", transaction),
    "get": _sequential("basic.get", get),
    **{name: _beside(*each) for name, each in BESIDE.items()},
    "topology": Scenario(
        "declare, bind, delete, one at a time", lambda context: topology(context.broker, context.address), "more"
    ),
    "latency": Scenario(
        "latency at half of the peer's rate",
        lambda context: latency(context.rate, context.broker, context.address, context.seconds),
    ),
    "round-trip": Scenario(
        "one message at a time, idle",
        lambda context: round_trip(context.broker, context.address, context.seconds),
    ),
    "connections": Scenario(
        "connections opened, used once, closed",
        lambda context: connections(context.broker, context.address, context.seconds),
        "more",
    ),
    "idle": Scenario(
        f"{CONNECTIONS:,} idle connections with heartbeats",
        lambda context: idle(context.broker, context.address, context.seconds),
        alone=True,
    ),
    "memory": Scenario(
        "a million messages waiting",
        lambda context: waiting(context.broker, context.address),
        alone=True,
    ),
}
"""In the order of running: memory last, because a heap that has grown slows what comes after."""

RATE_SCENARIO = "acked"
"""Half of the peer's throughput in this one is the rate at which latencies are measured."""
RATE_FIGURE = "messages/s"
