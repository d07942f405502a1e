"""What `hopline capture list` shows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from services.cli.console import cell
from services.cli.durations import moment
from services.common.capture.cost import Captured
from services.common.disk import mebibytes
from services.common.printable import printable_json


def show_rules(rules: Sequence[Captured], console: Console) -> None:
    """As a table; what was left out stands out."""
    table = Table(box=None, pad_edge=False)
    for heading in ("rule", "until", "limit", "messages", "kept", "left out", "of messages with"):
        table.add_column(heading, overflow="fold")
    for told in rules:
        rule, cost = told.rule, told.cost
        row = (
            rule.name,
            "ended" if told.ended else moment(rule.until_ms * 1000),
            mebibytes(rule.limit),
            str(cost.messages),
            mebibytes(cost.bytes),
            str(cost.left_out),
            " ".join(f"{name}={value}" for name, value in rule.conditions.items()) or "anything",
        )
        table.add_row(*map(cell, row), style="yellow" if cost.left_out else None)
    console.print(table)


def show_rules_json(rules: Sequence[Captured], console: Console) -> None:
    """As JSON lines."""
    for told in rules:
        console.out(printable_json(told.model_dump_json()), highlight=False)
