"""The table of a session, and its JSON."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING

from rich.table import Table

from benchmarks.brokers.rabbitmq_cluster import DURABLE
from benchmarks.scenarios import SCENARIOS
from benchmarks.session import PEER, Session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from benchmarks.result import Result

_MEASURES = (("hopline on postgres", "hopline"), ("hopline on jetstream", "rabbitmq quorum"))
"""A database is measured by the file that it takes the place of, three servers by three nodes with copies."""
_RATE = "messages/s"
_FEW = 2


def print_table(
    session: Session, brokers: Sequence[str], console: Console, title: str = "256-byte messages, medians"
) -> None:
    """Every figure of every broker, and how many times better the first is than the peer."""
    table = Table(title=title)
    table.add_column("scenario")
    table.add_column("figure")
    for broker in brokers:
        table.add_column(broker, justify="right")
    if compares(brokers):
        table.add_column("times better", justify="right")
    for scenario, measured in session.results.items():
        for row in _rows(session, scenario, measured, brokers):
            table.add_row(*row)
        table.add_section()
    console.print(table)
    for said in _stores(session):
        console.print(said)
    if compares(brokers) and (said := _range(session, brokers)):
        console.print(said)


def compares(brokers: Sequence[str]) -> bool:
    """Whether there is a ratio to show: another broker and the peer."""
    return len(brokers) > 1 and brokers[1] == PEER


def ratio(session: Session, scenario: str, figure: str, brokers: Sequence[str]) -> float | None:
    """How many times better the first broker is than the second, by the direction of the scenario."""
    ours, theirs = (session.figure(scenario, broker, figure) for broker in brokers[:2])
    if not ours or not theirs:
        return None
    return ours / theirs if SCENARIOS[scenario].better == "more" else theirs / ours


def print_scaling(session: Session, stacks: Sequence[str], console: Console) -> None:
    """The same load on the same stack, but for the number of its queue processes."""
    print_table(session, stacks, console, "Hopline by queue processes, 256-byte messages, medians")
    console.print(
        f"[dim]One gateway, the store and the load generator share the machine's {os.cpu_count()} cores with the queue "
        "processes: more of these help only while cores are idle and the one gateway is not the limit.[/]"
    )


def write_json(session: Session, scaling: Session, folder: Path) -> Path:
    """All results of all rounds and where they were measured; gives the file's path."""
    folder.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    path = folder / f"{now:%Y%m%d-%H%M%S}.json"
    results = {
        scenario: {broker: [asdict(result) for result in rounds] for broker, rounds in measured.items()}
        for scenario, measured in (*session.results.items(), *scaling.results.items())
    }
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}
    document = {"at": now.isoformat(), "machine": machine, "seconds": session.seconds, "results": results}
    document["failures"] = [*session.failures, *scaling.failures]
    path.write_text(json.dumps(document, indent=2))
    return path


def _rows(
    session: Session, scenario: str, measured: dict[str, list[Result]], brokers: Sequence[str]
) -> list[list[str]]:
    rows: list[list[str]] = []
    names = next(iter(measured.values()))[0].figures
    for figure in names:
        cells = [_spread(session.values(scenario, broker, figure)) for broker in brokers]
        if compares(brokers):
            cells.append(_number(ratio(session, scenario, figure, brokers)))
        rows.append(["" if rows else SCENARIOS[scenario].title, figure, *cells])
    for attribute, title in (("broker_cpu", "broker"), ("generator_cpu", "generator")):
        cells = [_number(_median(measured.get(broker, []), attribute)) for broker in brokers]
        if any(cell != "-" for cell in cells):
            rows.append(["", f"[dim]{title}, CPU s per million[/]", *cells, *([""] if compares(brokers) else [])])
    for name in next(iter(measured.values()))[0].notes:
        cells = [_number(_noted(measured.get(broker, []), name)) for broker in brokers]
        rows.append(["", f"[dim]{name}[/]", *cells, *([""] if compares(brokers) else [])])
    return rows


def _range(session: Session, brokers: Sequence[str]) -> str:
    """The worst and the best of all ratios: a table shows what one looks for."""
    ratios = [
        (value, f"{SCENARIOS[scenario].title}, {figure}")
        for scenario, measured in session.results.items()
        for figure in next(iter(measured.values()))[0].figures
        if (value := ratio(session, scenario, figure, brokers)) is not None
    ]
    if not ratios:
        return ""
    worst, best = min(ratios), max(ratios)
    return f"times better than {brokers[1]}: worst {worst[0]:.2f} ({worst[1]}), best {best[0]:.2f} ({best[1]})"


def _stores(session: Session) -> list[str]:
    """What each store that is distributed reaches, of what it is to be measured by."""
    return [
        f"{ours} reaches {share:.2f} of {theirs}: {SCENARIOS[scenario].title}"
        for ours, theirs in _MEASURES
        for scenario in sorted(DURABLE.intersection(session.results))
        if (share := ratio(session, scenario, _RATE, (ours, theirs)))
    ]


def _spread(values: list[float]) -> str:
    """The median, and between which values it lies."""
    if len(values) < _FEW:
        return _number(median(values) if values else None)
    return f"{_number(median(values))} [dim]{_number(min(values))} to {_number(max(values))}[/]"


def _noted(results: list[Result], name: str) -> float | None:
    values = [result.notes[name] for result in results if name in result.notes]
    return median(values) if values else None


def _median(results: list[Result], attribute: str) -> float | None:
    values = [value for result in results if (value := getattr(result, attribute)) is not None]
    return median(values) if values else None


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
