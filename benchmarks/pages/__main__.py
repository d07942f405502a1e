"""What pages of a long list cost the message path: `python -m benchmarks.pages`.

Ten thousand queues, and a stream of messages with confirms and acks. In turns nobody asks, and somebody asks several
times a second for a page of the list of queues, sorted by a statistic, each time by another, at RabbitMQ's API and at
Broker-J's. Told are the stream's rate, the processor's time of each service, how long a page takes, and how old its
statistics are at most. With `--py-spy PATH` also in which functions mgmt, a queue process and the router spend it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.brokers.hopline import Hopline
from benchmarks.brokers.processes import cpu_seconds
from benchmarks.load import Load
from benchmarks.pages.asking import Asking, Client, paths
from benchmarks.pages.probe import Probe
from benchmarks.profiles import Profile, by_function
from benchmarks.session import OUT
from benchmarks.throughput import Flow, flowing
from benchmarks.wire import Address, Connection, publication

SERVICES: Final = ("gateway", "queue-1", "queue-2", "router", "store", "mgmt")
PROFILED: Final = ("mgmt", "queue-1", "router")
_SHOWN: Final = 12  # functions
_DEPTHS: Final = 4


@dataclass(frozen=True, slots=True)
class Turn:
    """What was measured in one: messages a second, and processor time of each service, of a second."""

    rate: float
    cpu: Mapping[str, float]


def _fill(address: Address, queues: int) -> None:
    """Declares them, with nought to three messages in each: a list that is all the same is no list to sort."""
    connection = Connection(address)
    for number in range(queues):
        name = f"listed-{number}"
        connection.declare_queue(name, durable=False)
        message = publication("", name, b"x" * 100, persistent=False)
        connection.socket.sendall(message * (number % _DEPTHS))
    connection.close_channel()
    connection.close_in_order()


def _turn(flow: Flow, pids: Mapping[str, int], seconds: float) -> Turn:
    began, before = time.monotonic(), flow.consumed
    used = {name: cpu_seconds([pid]) for name, pid in pids.items()}
    flow.generator.sleep(seconds)
    elapsed = time.monotonic() - began
    cpu = {name: (cpu_seconds([pid]) - used[name]) / elapsed for name, pid in pids.items()}
    return Turn((flow.consumed - before) / elapsed, cpu)


class Turns:
    """All of them, of one stream."""

    def __init__(self, flow: Flow, pids: Mapping[str, int], seconds: float) -> None:
        self._flow, self._pids, self._seconds = flow, pids, seconds
        self.quiet, self.asked = list[Turn](), list[Turn]()
        self.times: dict[str, list[float]] = {}

    def both(self, address: Address, port: int, per_second: float) -> None:
        """One without, and one with."""
        self.quiet.append(_turn(self._flow, self._pids, self._seconds))
        asking = Asking(Client(address, port), per_second)
        asking.start()
        try:
            self.asked.append(_turn(self._flow, self._pids, self._seconds))
        finally:
            asking.stop()
        for whose, times in asking.times.items():
            self.times.setdefault(whose, []).extend(times)

    def tell(self) -> None:
        """A table."""
        rates = [median(each.rate for each in turns) for turns in (self.quiet, self.asked)]
        print(f"{'':<12}{'without':>12}{'with pages':>12}")
        print(f"{'messages/s':<12}{rates[0]:>12,.0f}{rates[1]:>12,.0f}  {100 * (rates[1] / rates[0] - 1):+.0f} %")
        for name in self._pids:
            cpu = [median(each.cpu[name] for each in turns) for turns in (self.quiet, self.asked)]
            million = [1e6 * used / rate for used, rate in zip(cpu, rates, strict=True)]
            told = f"{million[0]:.2f} and {million[1]:.2f} s for a million messages"
            print(f"{name:<12}{100 * cpu[0]:>10.1f} %{100 * cpu[1]:>10.1f} %  {told}")
        for whose, times in self.times.items():
            ordered = sorted(times)
            late = ordered[int(len(ordered) * 0.99)]
            print(
                f"a page of {whose} API: median {1e3 * median(ordered):.0f} ms, 99 % within {1e3 * late:.0f} ms, "
                f"worst of {len(ordered)} {1e3 * ordered[-1]:.0f} ms"
            )


def _profile(py_spy: str, folder: Path, pids: Mapping[str, int], seconds: float) -> None:
    """Of services, while pages are asked for."""
    profiles = {
        name: Profile(py_spy, pids[name], folder / f"profile-{name}", seconds, working=True) for name in PROFILED
    }
    for each in profiles.values():
        each.start()
    for name, each in profiles.items():
        counted = by_function(each.stacks())
        print(f"{name}: {counted.total():,} samples")
        for function, count in counted.most_common(_SHOWN):
            print(f"    {100 * count / counted.total():5.1f} %  {function}")


def _measure(broker: Hopline, address: Address, folder: Path, asked: argparse.Namespace) -> None:
    _fill(address, asked.queues)
    client = Client(address, broker.http_port)
    for _, path in paths():  # routes, and lists, are made when somebody asks for the first time
        client.get(path)
    pids = {name: broker.pid(name) for name in SERVICES}
    with flowing(Load(confirms=True, acks=True), address) as flow:
        turns = Turns(flow, pids, asked.seconds)
        for _ in range(asked.rounds):
            turns.both(address, broker.http_port, asked.rate)
        turns.tell()
        asking, probe = (
            Asking(Client(address, broker.http_port), asked.rate),
            Probe(address, Client(address, broker.http_port)),
        )
        asking.start()
        probe.start()
        try:
            if asked.py_spy:
                _profile(asked.py_spy, folder, pids, asked.seconds)
            else:
                flow.generator.sleep(asked.seconds)
        finally:
            asking.stop()
            probe.stop()
        print(f"statistics were at most {max(probe.ages):.1f} s old; load {os.getloadavg()[0]:.1f}")


def main(asked: argparse.Namespace) -> None:
    """Prints what was measured."""
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="pages-", dir=OUT))
    os.environ["HOPLINE_METRICS_QUEUES"] = str(asked.apart)
    broker = Hopline()
    try:
        _measure(broker, broker.start(folder), folder, asked)
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _asked(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=5, help="pages a second")
    parser.add_argument("--seconds", type=float, default=6, help="of each turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--apart", action="store_true", help="count each queue apart, as HOPLINE_METRICS_QUEUES has it")
    parser.add_argument("--py-spy", default="", help="where it is, for the profile")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(_asked())
