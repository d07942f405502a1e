"""The command line of the analyses: one command for each, found in the registry."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from spark.errors import AnalysisError
from spark.registry import job, names
from spark.times import time_of

if TYPE_CHECKING:
    from spark.run import Sources

# ruff: noqa: PLC0415 - Spark is imported by the command that runs it: `--help` works without, and at once

_MOST_ROWS = 1_000_000_000

_INTERRUPTED = 130  # as shells say of what ends by Ctrl-C

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _heap(size: str | None) -> str | None:
    """Java would say on many lines what is wrong with it."""
    if size is not None and not re.fullmatch(r"[1-9]\d{0,8}[kmgt]b?", size, re.ASCII | re.IGNORECASE):
        raise typer.BadParameter(f"{size} is no size; 512m or 2g is one")
    return size


@app.callback()
def analyses() -> None:
    """Analyses of the ledger on Apache Spark."""


_Ledger = Annotated[str, typer.Option(help="Folder or URI of the ledger.")]
_Out = Annotated[str, typer.Option(help="Folder or URI for results: <out>/<analysis>/<table>.parquet and .json.")]
_Master = Annotated[
    str | None,
    typer.Option(help="Spark master: local[*], spark://host:7077, …", show_default="local[*]", envvar="SPARK_MASTER"),
]
_Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="90s, 15m, 2h, 1d ago, or 2026-01-31T12:00, UTC unless it says otherwise."),
]
_Until = Annotated[str | None, typer.Option(metavar="TIME", help="The end of the time that is analysed, likewise.")]
_Spans = Annotated[
    list[str] | None,
    typer.Option(help="Folder of spans: OTLP in JSON lines, or Jaeger's JSON; repeatable.", show_default="data/spans"),
]
_Memory = Annotated[
    str | None,
    typer.Option(help="Heap of the driver, which on local[*] does all work: 2g, 6g, …", callback=_heap),
]
_Options = Annotated[
    list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="An option of the analysis; repeatable.")
]


_AsOf = Annotated[
    str | None,
    typer.Option(
        metavar="now|end|TIME",
        help="When the record is judged (audit): what nothing was heard of for long by then is missing. "
        "Otherwise now for a live record, else its last row.",
    ),
]


def _finite(value: float) -> float:
    """`nan` is a number to Python, and below no bound."""
    if not isfinite(value):
        raise typer.BadParameter(f"{value} is no number")
    return value


def _number(means: str, least: float = 0, most: float = 1e9) -> Any:  # noqa: ANN401 - as typer's
    return typer.Option(min=least, max=most, callback=_finite, help=means)


_DATA = os.environ.get("HOPLINE_DATA", "data").rstrip("/")
_DEFAULT_LEDGER = f"{_DATA}/ledger"
_DEFAULT_SPANS = os.environ.get("HOPLINE_SPANS") or f"{_DATA}/spans"


def _add(name: str, summary: str) -> None:
    def analyse(
        ledger: _Ledger = _DEFAULT_LEDGER,
        out: _Out = "analyses",
        master: _Master = None,
        since: _Since = None,
        until: _Until = None,
        spans: _Spans = None,
        memory: _Memory = None,
        as_of: _AsOf = None,
        option: _Options = None,
    ) -> None:
        def work() -> None:
            found = _sources(ledger, since, until, spans, [*_said_as_of(as_of), *(option or [])])
            _analyse(name, found, out, master, memory)

        _failing_in_a_line(work)

    app.command(name, help=summary)(analyse)


for _name, _summary in sorted(names().items()):
    _add(_name, _summary)


@app.command()
def follow(
    ledger: _Ledger = _DEFAULT_LEDGER,
    out: _Out = "analyses",
    checkpoint: Annotated[str, typer.Option(help="Folder of the stream's checkpoint, kept over restarts.")] = (
        "analyses/checkpoint"
    ),
    every: Annotated[float, _number("Seconds between results.")] = 5.0,
    late: Annotated[float, _number("Rows may come so many seconds after others of their time.")] = 10.0,
    keep: Annotated[
        float, _number("Seconds without a row after which a message is counted by its last state.")
    ] = 3600.0,
    grace: Annotated[float, _number("Seconds within which a missing message is not called lost.")] = 60.0,
    once: Annotated[bool, typer.Option("--once", help="Read the present files, and end.")] = False,
    master: _Master = None,
    memory: _Memory = None,
) -> None:
    """Follows the ledger while it is written: audit and latencies anew after each batch, until Ctrl-C."""

    def work() -> None:
        from contextlib import ExitStack

        from spark.alone import alone
        from spark.checks import require_writable
        from spark.failure import told_in_a_line
        from spark.interrupt import end_on_interrupt
        from spark.session import build_session
        from spark.stream.batch import OUTPUTS
        from spark.stream.follow import SETTINGS, java_options
        from spark.stream.follow import follow as start
        from spark.stream.following import Following

        following = Following(ledger, out, checkpoint, every, late, keep, grace)
        require_writable(out)
        require_writable(checkpoint)
        with ExitStack() as stack:
            for name in OUTPUTS:
                stack.enter_context(alone(out, name))
            session = build_session(master, memory, SETTINGS, java_options(master))
            end_on_interrupt(session.sparkContext, status=0)  # as it is meant to end; the checkpoint knows how to go on
            stack.enter_context(told_in_a_line(out, checkpoint))
            start(session, following, once=once, say=lambda line: typer.echo(line, err=True)).wait()

    _failing_in_a_line(work)


@app.command()
def generate(
    out: Annotated[str, typer.Argument(help="Folder for the ledger.")],
    rows: Annotated[int, typer.Option(min=1, max=_MOST_ROWS, help="About so many rows of stages.")] = 1_000_000,
    batch: Annotated[float, _number("Messages in a row, on average.", 1, 1e6)] = 10.0,
    queues: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many queues.")] = 40,
    skew: Annotated[float, _number("The share of messages that goes to one of them.", 0, 1)] = 0.0,
    losses: Annotated[int, typer.Option(min=0, help="How many batches lose messages.")] = 10,
    duplicates: Annotated[int, typer.Option(min=0, help="How many batches have messages twice.")] = 10,
    gaps: Annotated[int, typer.Option(min=0, help="How many gaps the record has.")] = 0,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    ids: Annotated[bool, typer.Option("--ids", help="Each message has a message id: message-<uid>.")] = False,
) -> None:
    """Makes a ledger of random journeys whose true fates are known: written beside it as truth.json."""
    from spark.checks import require_no_ledger, require_writable
    from spark.generate.files import write
    from spark.generate.plan import Plan
    from spark.progress import steps
    from spark.room import with_room_in

    plan = Plan(rows, batch, queues, skew, losses, duplicates, gaps, seed, ids=ids)

    def work() -> None:
        require_writable(out)
        require_no_ledger(out)
        with with_room_in(out), steps("batches", plan.batches, Console(stderr=True)) as done:
            made = write(plan, out, done=done).rows
        typer.echo(f"{made} rows")

    _failing_in_a_line(work)


@app.command()
def report(
    ledger: _Ledger = _DEFAULT_LEDGER,
    out: _Out = "analyses",
    master: _Master = None,
    since: _Since = None,
    until: _Until = None,
    spans: _Spans = None,
    memory: _Memory = None,
    as_of: _AsOf = None,
    only: Annotated[list[str] | None, typer.Option(help="An analysis to run; repeatable. Otherwise all.")] = None,
    fresh: Annotated[bool, typer.Option("--run/--no-run", help="Or take the results that are there.")] = True,
) -> None:
    """Runs the analyses, and puts everything on one page: <out>/report.html."""
    from spark.report.command import run_all, write_report

    def work() -> None:
        if fresh:
            from spark.alone import require_alone
            from spark.checks import require_any, require_moment, require_writable
            from spark.compiling import java_options
            from spark.interrupt import end_on_interrupt
            from spark.session import build_session

            wanted = [job(name) for name in only or names()]
            sources = _sources(ledger, since, until, spans, _said_as_of(as_of))
            require_moment(sources)
            require_any(wanted, sources)
            require_writable(out)
            require_alone(out, *(analysis.name for analysis in wanted))
            console = Console(stderr=True)
            java = java_options(sources, times=len(wanted))
            session = build_session(master, memory, java_options=java)
            end_on_interrupt(session.sparkContext)
            run_all(session, sources, out, only or (), console)
        else:
            _tell_of_others(out)
        typer.echo(write_report(out))

    _failing_in_a_line(work)


def _tell_of_others(out: str) -> None:
    """Whoever reads the page may wait for what is not on it."""
    from spark.alone import at_work

    if others := at_work(out, names()):
        typer.echo(f"a run is at work on {', '.join(others)}: the page has what was finished before", err=True)


def _sources(
    ledger: str, since: str | None, until: str | None, spans: list[str] | None, options: list[str] | None
) -> Sources:
    from spark.run import Sources

    given = dict(_pair(option) for option in options or [])
    return Sources(ledger, _time(since), _time(until), tuple(spans or [_DEFAULT_SPANS]), given)


def _analyse(name: str, sources: Sources, out: str, master: str | None, memory: str | None) -> None:
    from spark.alone import require_alone
    from spark.checks import require_ledger, require_options, require_writable
    from spark.compiling import java_options
    from spark.interrupt import end_on_interrupt
    from spark.progress import progress
    from spark.run import run
    from spark.session import build_session
    from spark.shown import show

    found = job(name)
    require_options(found, sources)
    require_ledger(found, sources)
    require_writable(out)
    require_alone(out, name)
    spark = build_session(master, memory, java_options=java_options(sources, spans="stages" not in found.reads))
    end_on_interrupt(spark.sparkContext)
    errors = Console(stderr=True)
    with progress(spark.sparkContext, errors):
        result = run(spark, found, sources, out)
    for table, rows in result.tables.items():
        show(table, rows)
    _show_reading(result.summary, errors)


def _failing_in_a_line(work: Callable[[], None]) -> None:
    try:
        work()
    except ModuleNotFoundError as error:
        _fail(f"analyses need {error.name}, which is not installed: pip install 'hopline[analytics]'")
    except AnalysisError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted", _INTERRUPTED)


def _fail(text: str, code: int = 1) -> None:
    typer.echo(text, err=True)
    raise typer.Exit(code)


def _said_as_of(moment: str | None) -> list[str]:
    return [] if moment is None else [f"as-of={moment}"]


def _time(text: str | None) -> datetime | None:
    return None if text is None else time_of(text, datetime.now(UTC))


def _pair(option: str) -> tuple[str, str]:
    name, separator, value = option.partition("=")
    if not separator:
        raise AnalysisError(f"--option {option}: say it as NAME=VALUE")
    return name, value


def _show_reading(summary: dict[str, Any], console: Console) -> None:
    for name, read in summary["inputs"].items():
        for refused in read["refused"]:
            console.print(f"not read: {refused['path']}: {refused['reason']}", markup=False, soft_wrap=True)
        if read["refused"]:
            console.print(f"{name}: {len(read['refused'])} files were not read; the results are without them")
        if read.get("bad_lines"):
            console.print(
                f"{name}: {read['bad_lines']} lines of {read['lines']} were not read; the results are without them"
            )
        if read["rows"]:
            console.print(f"{name}: {read['rows']} rows in {read['files']} files")
    console.print(f"{summary['seconds']:.1f} s")
