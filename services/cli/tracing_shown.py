"""What `hopline tracing` shows: processes with their spans, and rules."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table

from services.cli.console import cell
from services.common.printable import printable_json
from services.common.telemetry.rules import Rule
from services.common.telemetry.status import Status


def show_processes(processes: list[Status], console: Console) -> None:
    """As a table; losses stand out."""
    table = Table(box=None, pad_edge=False)
    for heading in ("service", "instance", "spans", "exported", "dropped", "messages not followed"):
        table.add_column(heading, overflow="fold")
    for one in processes:
        numbers = [str(one.ended), str(one.exported), str(one.dropped), str(one.untraced)] if one.on else ["off"]
        table.add_row(
            *map(cell, (one.service, one.instance, *numbers)), style="red" if one.dropped or one.untraced else None
        )
    console.print(table)


def show_processes_json(processes: list[Status], console: Console) -> None:
    """As JSON lines."""
    for one in processes:
        console.out(printable_json(one.model_dump_json()), highlight=False)


def show_rules(rules: list[Rule], console: Console) -> None:
    """As a table."""
    table = Table(box=None, pad_edge=False)
    for heading in ("rule", "ratio", "of messages with"):
        table.add_column(heading, overflow="fold")
    for rule in rules:
        conditions = " ".join(f"{name}={value}" for name, value in rule.conditions.items())
        ratio = f"{rule.ratio:g}" if rule.ratio else "never"
        table.add_row(*map(cell, (rule.name, ratio, conditions or "anything")))
    console.print(table)


def show_rules_json(rules: list[Rule], console: Console) -> None:
    """As JSON lines."""
    for rule in rules:
        console.out(json.dumps({"name": rule.name, "ratio": rule.ratio, **rule.conditions}), highlight=False)
