"""`hopline analyse report`: runs the analyses, and puts what they found on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession
from rich.console import Console

from spark.errors import AnalysisError, NothingToRead
from spark.ledger.files import place
from spark.progress import progress
from spark.registry import job, names
from spark.report.page import page
from spark.report.results import read_results, unreplaced
from spark.run import Sources, run


def run_all(spark: SparkSession, sources: Sources, out: str, wanted: Sequence[str], console: Console) -> None:
    """Runs the analyses named, or every one that there is, each with the options that it has; says how long it took."""
    for name in wanted or names():
        analysis = job(name)
        known = {option: value for option, value in sources.options.items() if option in analysis.options}
        try:
            with progress(spark.sparkContext, console):
                result = run(spark, analysis, replace(sources, options=known), out)
        except NothingToRead as nothing:  # one reads what others do not
            console.print(f"{name:<14} {nothing}", highlight=False, soft_wrap=True)
            continue
        console.print(f"{name:<14} {result.summary['seconds']:6.1f} s", highlight=False)


def write_report(out: str) -> str:
    """Writes <out>/report.html of all results under `out`, and gives its path. Raises NothingToRead, AnalysisError."""
    found = read_results(out)
    with unreplaced(out, found.values()):  # what is long is read while the page is made
        written = page(found)
    there = place(out)
    path = f"{there.path.rstrip('/')}/report.html"
    try:
        with there.system.open_output_stream(path) as file:
            file.write(written.encode())
    except OSError as error:
        raise AnalysisError(f"{path} cannot be written: {error}") from None
    return path
