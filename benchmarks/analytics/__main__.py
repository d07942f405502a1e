"""`python -m benchmarks.analytics`: the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from duckdb import Error as DuckDBError
from rich.console import Console
from rich.table import Table

from benchmarks.analytics.audit import Compared, by_duckdb, compare
from benchmarks.analytics.process import Failed, Took
from benchmarks.analytics.stream import measure

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)
console = Console()


@app.command()
def audit(
    rows: Annotated[list[int] | None, typer.Option(help="Sizes, in rows of stages; repeatable.")] = None,
    batch: Annotated[float, typer.Option(help="Messages in a row, on average.")] = 10.0,
    skew: Annotated[float, typer.Option(help="The share of messages that goes to one queue.")] = 0.0,
    cores: int = 2,
    memory: Annotated[str, typer.Option(help="Heap of Spark's driver, which does all work.")] = "3g",
    folder: Annotated[Path, typer.Option(help="Where ledgers are made, and removed again.")] = Path("benchmarks/out"),
) -> None:
    """The audit on Spark and by DuckDB, on the same files: times, greatest memory, and whether they agree."""
    table = Table("rows", "Spark s", "DuckDB s", "Spark/DuckDB", "Spark MB", "DuckDB MB", "agree")
    failures = []
    for size in rows or [1_000_000, 10_000_000]:
        one = compare(size, batch, skew, cores, memory, folder)
        table.add_row(*_cells(one))
        failures += [
            f"{name} of {one.rows:,} rows: {took.reason}"
            for name, took in (("Spark", one.spark), ("DuckDB", one.duckdb))
            if isinstance(took, Failed)
        ]
    console.print(table)
    for failure in failures:
        console.print(failure, soft_wrap=True, markup=False, highlight=False)
    if failures:
        raise typer.Exit(1)


def _cells(one: Compared) -> tuple[str, ...]:
    both = one.spark, one.duckdb
    seconds = [f"{took.seconds:.1f}" if isinstance(took, Took) else "failed" for took in both]
    megabytes = [f"{took.megabytes:.0f}" if isinstance(took, Took) else "" for took in both]
    ratio = ""
    if isinstance(one.spark, Took) and isinstance(one.duckdb, Took):
        ratio = f"{one.spark.seconds / one.duckdb.seconds:.2f}"
    return f"{one.rows:,}", *seconds, ratio, *megabytes, "yes" if one.agree else "NO"


@app.command(hidden=True)
def duckdb(ledger: str, cores: int, out: Path) -> None:
    """DuckDB's side, in a process of its own."""
    try:
        out.write_text(json.dumps(by_duckdb(ledger, cores)))
    except DuckDBError as error:
        typer.echo(str(error).partition("\n")[0], err=True)
        raise typer.Exit(1) from None


@app.command()
def stream(
    rate: Annotated[float, typer.Option(help="Messages a second.")] = 100_000.0,
    seconds: Annotated[float, typer.Option(help="For how long.")] = 120.0,
    batch: Annotated[
        float, typer.Option(help="Messages in a row, on average; a broker at 36,000 messages a second files 37.")
    ] = 30.0,
    core: Annotated[int, typer.Option(help="The core that the stream may use.")] = 0,
    folder: Annotated[Path, typer.Option(help="Where the ledger is made, and removed again.")] = Path("benchmarks/out"),
) -> None:
    """The stream on one core, while a ledger is written: how old its results are."""
    ages = measure(rate, seconds, batch, core, folder)
    if len(ages) < 2:
        console.print(f"it does not keep up: fewer than three results within {seconds:.0f} s")
        raise typer.Exit(1)
    table = Table("batch", "rows end", "result after s", "took s")
    for age in ages:
        table.add_row(str(age.batch), age.record_end, f"{age.age:.1f}", f"{age.seconds:.1f}")
    console.print(table)
    console.print(f"oldest result that was shown: {max(age.oldest for age in ages[1:]):.1f} s")


if __name__ == "__main__":
    app()
