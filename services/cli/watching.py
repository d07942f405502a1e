"""`hopline health` and `hopline events`: how the running stack is, and what happens in it."""

from __future__ import annotations

from typing import Annotated

import typer

from services.cli.asking import read_bus_address, read_settings, run
from services.cli.listing import AsJson, show_json

# ruff: noqa: PLC0415 - what shows something is imported by the command that shows it: it takes time and memory


def add_to(app: typer.Typer) -> None:
    """The commands become `app`'s."""
    app.command()(health)
    app.command()(events)


def health(as_json: AsJson = False) -> None:
    """Shows the health of each part of the running stack, and of each member; exit status 0 when all parts are well."""
    from services.cli.health import health_lines
    from services.common.clients import healthz
    from services.common.ports.port import host_and_port

    settings = read_settings()
    host, port = settings.http_host, settings.http_port
    address = host_and_port(healthz.reachable(host), port)
    status, body = run(healthz.ask(host, port), f"{address} (HOPLINE_HTTP_HOST, HOPLINE_HTTP_PORT)")
    if as_json:
        show_json(body)
    else:
        for line in health_lines(body):
            typer.echo(line)
    raise typer.Exit(0 if status == 200 else 1)


def events(
    subject: Annotated[
        str, typer.Option(help="NATS subject; services/common/bus/README.md has the tree.", show_default="all")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on each line.")] = False,
) -> None:
    """Shows events of the running stack, live, until Ctrl-C: queues, consumers, connections, leases."""
    from services.cli.console import stdout_console
    from services.cli.events import show, show_json
    from services.common.bus.subject import ALL

    address = read_bus_address(read_settings())
    try:
        run((show_json if as_json else show)(address, subject or ALL, stdout_console()), "the event bus")
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
