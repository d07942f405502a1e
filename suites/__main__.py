"""`python -m suites`: the command line."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console

from suites.brokers import HOPLINE, RABBITMQ
from suites.failure import NotRun
from suites.report import print_report
from suites.session import Session, limited
from suites.table import SUITES

if TYPE_CHECKING:
    from suites.suite import Suite

WORK = Path(__file__).parents[1] / ".suites"
NAMES = ", ".join(suite.name for suite in SUITES)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console()


@app.command()
def main(
    only: Annotated[list[str] | None, typer.Option(help=f"Of {NAMES}; again for several; all by default.")] = None,
    sources: Annotated[
        Path | None, typer.Option(envvar="HOPLINE_SUITES", help="A folder of checkouts, each under its suite's name.")
    ] = None,
    work: Annotated[Path, typer.Option(help="Where suites are installed, and logs of runs are kept.")] = WORK,
    broker: Annotated[list[str] | None, typer.Option(help="One broker: nothing is compared then.")] = None,
    seconds: Annotated[float | None, typer.Option(min=1, help="Another time limit for each run of a suite.")] = None,
    prepare: Annotated[bool, typer.Option("--prepare", help="Only download and install what suites need.")] = False,
) -> None:
    """Runs the suites; exit status 1 when a test passes at RabbitMQ and not at Hopline, unless that is on purpose.

    Also when Hopline takes no connections any more after a suite, or a suite can be run at RabbitMQ only.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    chosen = [limited(suite, seconds) for suite in _chosen(only)]
    session = Session(work.resolve(), sources.resolve() if sources else None, console.print)
    if prepare:
        _prepare(session, chosen)
        return
    brokers = _brokers(broker)
    played = [session.play(suite, brokers) for suite in chosen]
    print_report(played, brokers, console)
    raise typer.Exit(not all(one.well for one in played))


def _chosen(only: list[str] | None) -> list[Suite]:
    if unknown := set(only or ()) - {suite.name for suite in SUITES}:
        raise typer.BadParameter(f"no suite {', '.join(unknown)}; there are {NAMES}")
    return [suite for suite in SUITES if not only or suite.name in only]


def _brokers(wanted: list[str] | None) -> list[str]:
    if unknown := set(wanted or ()) - {HOPLINE, RABBITMQ}:
        raise typer.BadParameter(f"no broker {', '.join(unknown)}; there are {HOPLINE}, {RABBITMQ}")
    return wanted or [HOPLINE, RABBITMQ]


def _prepare(session: Session, suites: list[Suite]) -> None:
    for suite in suites:
        try:
            session.prepare(suite)
        except NotRun as failure:
            console.print(f"[yellow]{suite.name} cannot be run:[/] {failure}", highlight=False, soft_wrap=True)


def _end(number: int, _: object) -> NoReturn:
    # Leads through the clean-up that ends brokers and runners, which a second request must not cut short.
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


if __name__ == "__main__":
    app()
