from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Coroutine
from typing import Any

from rich.console import Console
from typer.testing import CliRunner

from services.cli.tracing import commands
from services.cli.tracing_shown import show_processes, show_rules
from services.common.telemetry.rules import Rule
from services.common.telemetry.status import Status


class Stack:
    """Takes rules, as the store would."""

    def __init__(self) -> None:
        self.kept: list[Rule] = []
        self.removed: list[str] = []

    async def put(self, rule: Rule) -> None:
        self.kept.append(rule)

    async def remove(self, name: str) -> None:
        self.removed.append(name)

    async def rules(self) -> list[Rule]:
        return self.kept


def test_rules() -> None:
    """What the command line says of a rule is what the store is told."""
    stack, runner = Stack(), CliRunner()

    def talk(call: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        return asyncio.run(call(stack))

    app = commands(talk)
    given = ["--queue", "q*", "--exchange", "e", "--client", "c", "--message-id", "m", "--vhost", "/", "--ratio", "0.5"]
    assert runner.invoke(app, ["rules", "add", "r", *given, "--header", "h=v=w"]).exit_code == 0
    assert runner.invoke(app, ["rules", "add", "s", "--header", "h"]).exit_code == 0
    assert runner.invoke(app, ["rules", "add", "t", "--ratio", "2"]).exit_code == 2
    assert runner.invoke(app, ["rules", "remove", "r"]).exit_code == 0
    assert stack.removed == ["r"]
    assert stack.kept == [
        Rule(name="r", ratio=0.5, virtual_host="/", exchange="e", queue="q*", client="c", message_id="m",
             header="h", header_value="v=w"),
        Rule(name="s", header="h"),
    ]  # fmt: skip
    listed = runner.invoke(app, ["rules", "list", "--json"]).stdout.splitlines()
    assert listed[1] == '{"name": "s", "ratio": 1.0, "header": "h"}'


def test_shown() -> None:
    """Tables name every rule with its conditions, and every process with its losses."""
    out = io.StringIO()
    console = Console(file=out, width=200)
    show_rules([Rule(name="r", queue="q*", ratio=0), Rule(name="all")], console)
    assert "never" in out.getvalue()
    assert "queue=q*" in out.getvalue()
    assert "anything" in out.getvalue()
    counts = {"ended": 9, "exported": 2, "dropped": 7, "untraced": 1}
    show_processes(
        [
            Status(service="queue", instance="queue-1", time_ms=1, on=True, **counts),
            Status(
                service="store", instance="store-1", time_ms=1, on=False, ended=0, exported=0, dropped=0, untraced=0
            ),
        ],
        console,
    )
    rows = [line.split() for line in out.getvalue().splitlines()]
    assert ["queue", "queue-1", "9", "2", "7", "1"] in rows
    assert ["store", "store-1", "off"] in rows
