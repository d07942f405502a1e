"""`python -m benchmarks`: the command line."""

from __future__ import annotations

import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from benchmarks.behaviours import BEHAVIOURS
from benchmarks.beside import BESIDE
from benchmarks.brokers.apart import Apart
from benchmarks.brokers.existing import Existing
from benchmarks.brokers.hopline import Hopline, StoreName
from benchmarks.brokers.rabbitmq import RabbitMQ
from benchmarks.brokers.rabbitmq_cluster import RabbitMQCluster
from benchmarks.failure import BenchmarkError
from benchmarks.plot import draw
from benchmarks.report import print_scaling, print_table, write_json
from benchmarks.scenarios import SCENARIOS, SPREAD
from benchmarks.session import OUT, Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.brokers import Broker


class BrokerName(StrEnum):
    """Which brokers there are."""

    hopline = "hopline"
    rabbitmq = "rabbitmq"
    quorum = "rabbitmq quorum"
    no_ledger = "no ledger"


SHAPES = [name for name in BESIDE if name.startswith("beside-")]
GROUPS = {"behaviours": list(BEHAVIOURS), "beside": SHAPES}
"""What stands for several: each type of queue and each behaviour, of which most are Hopline's alone; other floods."""
QUEUE_PROCESSES = (1, 2, 4)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console()


@app.command()
def main(
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Of {', '.join(SCENARIOS)}; again for several; `behaviours`: all that begin with queue-;"
            " `beside`: all that begin with beside-. By default the others."
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.5, max=600, help="How long a scenario is measured.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, max=50, help="How often the brokers take turns.")] = 3,
    only: Annotated[BrokerName | None, typer.Option(help="One broker instead of both in turns.")] = None,
    address: Annotated[str, typer.Option(help="With --only: a broker that runs already, 127.0.0.1:5672.")] = "",
    store: Annotated[
        list[StoreName] | None, typer.Option(help="The store of Hopline; again for one beside the other.")
    ] = None,
    network: Annotated[
        bool, typer.Option("--network", help="Hopline's services over TCP: with their secret beside without.")
    ] = False,
    rate: Annotated[float, typer.Option(min=0, help="Messages/s for latency; 0: half of the peer's rate.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw the result to this file (svg, png).")] = None,
) -> None:
    """The same load in turns on Hopline, RabbitMQ, and Hopline without its ledger: a table, JSON, a plot on request."""
    signal.signal(signal.SIGTERM, _end)
    session, scaling = Session(seconds, rate), Session(seconds)
    try:
        scenarios = _scenarios(scenario or [name for name in SCENARIOS if name not in {*BEHAVIOURS, *SHAPES}])
        brokers = _over_tcp() if network else _brokers(only, address, store or [StoreName.sqlite])
    except BenchmarkError as failure:
        _fail(str(failure))
    stacks = _stacks(brokers) if SPREAD in scenarios else []
    try:
        session.run(brokers, [name for name in scenarios if name != SPREAD], rounds, console)
        scaling.run(stacks, [SPREAD], rounds, console)
    except BenchmarkError as failure:  # what was measured before is told all the same
        session.failures.append(str(failure))
    _tell(session, brokers, scaling, stacks, plot)
    if failures := [*session.failures, *scaling.failures]:
        _fail("\n".join(["what failed:", *failures]))


def _tell(
    session: Session, brokers: Sequence[Broker], scaling: Session, stacks: Sequence[Broker], plot: Path | None
) -> None:
    if session.results:
        print_table(session, [broker.name for broker in brokers], console)
    if scaling.results:
        print_scaling(scaling, [stack.name for stack in stacks], console)
    console.print(f"written: {write_json(session, scaling, OUT)}")
    if plot and session.results:
        draw(session, [broker.name for broker in brokers if broker.measures is None], plot)
        console.print(f"drawn: {plot}")


def _scenarios(wanted: Sequence[str]) -> list[str]:
    found = {each for name in wanted for each in GROUPS.get(name, [name])}
    if unknown := found - set(SCENARIOS):
        raise BenchmarkError(f"no scenario {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    return [name for name in SCENARIOS if name in found]


def _brokers(only: BrokerName | None, address: str, stores: Sequence[StoreName]) -> list[Broker]:
    if address:
        if only is None:
            raise BenchmarkError("--address needs --only: the name under which it is shown")
        return [Existing(only.value, address)]
    every: dict[BrokerName, list[Broker]] = {
        BrokerName.hopline: [Hopline(store=store) for store in stores],
        BrokerName.rabbitmq: [RabbitMQ()],
        BrokerName.quorum: [RabbitMQCluster()] if StoreName.jetstream in stores or only is BrokerName.quorum else [],
        BrokerName.no_ledger: [Hopline(ledger=False, store=store) for store in stores],
    }
    chosen = [broker for name, brokers in every.items() if only in {None, name} for broker in brokers]
    present = [broker for broker in chosen if not _skipped(broker)]
    if not present:
        raise BenchmarkError("no broker to measure")
    return present


def _over_tcp() -> list[Broker]:
    return [Apart(secret=False), Apart(secret=True)]


def _stacks(brokers: Sequence[Broker]) -> list[Broker]:
    """Hopline with few and with many queue processes, where Hopline itself is measured."""
    if not any(isinstance(broker, Hopline) and broker.measures is None for broker in brokers):
        return []
    return [Hopline(queue_processes=count) for count in QUEUE_PROCESSES]


def _skipped(broker: Broker) -> bool:
    if reason := broker.missing():
        console.print(f"[yellow]{broker.name} is skipped: {reason}[/]")
        return True
    return False


def _end(*_: object) -> NoReturn:
    # Leads through the clean-up that stops the brokers, which a second request must not cut short.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


def _fail(text: str) -> NoReturn:
    console.print(f"[red]{escape(text)}[/]", highlight=False)
    raise typer.Exit(1)


if __name__ == "__main__":
    app()
