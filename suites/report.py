"""The table of a session, and what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from suites.outcome import Outcome, count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from suites.session import Played

LONGEST_TEXT = 300


def print_report(played: Sequence[Played], brokers: Sequence[str], console: Console) -> None:
    """A row a suite; below it every test that passes at RabbitMQ and not here."""
    table = Table(title="passed / failed / skipped")
    for column in ("suite", "version", *brokers, "differ on purpose", "differ"):
        table.add_column(column)
    for one in played:
        table.add_row(one.suite.name, one.suite.version, *(_cell(one, broker) for broker in brokers), *_counts(one))
    console.print(table)
    for one in played:
        _print_reasons(one, console)
        _print_differences(one, console)


def _cell(played: Played, broker: str) -> str:
    if broker not in played.results:
        return "not run"
    counts = " / ".join(str(count(played.results[broker], outcome)) for outcome in _COLUMNS)
    marks = [", time was up"] * (broker in played.overdue) + [", broker gone"] * (broker in played.gone)
    return counts + "".join(marks)


_COLUMNS = (Outcome.passed, Outcome.failed, Outcome.skipped)


def _counts(played: Played) -> tuple[str, str]:
    if len(played.results) < 2:
        return "", ""
    return str(len(played.comparison.listed)), str(len(played.comparison.unlisted))


def _print_reasons(played: Played, console: Console) -> None:
    for reason in dict.fromkeys(played.not_run.values()):
        brokers = " and ".join(broker for broker, why in played.not_run.items() if why == reason)
        console.print(
            f"[yellow]{played.suite.name} not run at {brokers}:[/] {escape(reason)}", highlight=False, soft_wrap=True
        )


def _print_differences(played: Played, console: Console) -> None:
    name = played.suite.name
    for test, reason in played.comparison.listed.items():
        console.print(f"{name}: {escape(test)}\n  on purpose: {escape(reason)}", highlight=False, soft_wrap=True)
    for test in played.comparison.unsteady:
        console.print(
            f"{name}: {escape(test)}\n  failed at first, passed when run again", highlight=False, soft_wrap=True
        )
    for test, text in played.comparison.unlisted.items():
        said = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} …"
        console.print(f"[red]{name}: {escape(test)}[/]\n  {escape(said)}", highlight=False, soft_wrap=True)
