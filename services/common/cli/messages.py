"""`hopline trace` and `hopline route`: where messages went, go, and would go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from services.common.cli.asking import fail, read_bus_address, read_settings, run
from services.common.cli.talking import on_mgmt
from services.common.question import MOST_JOURNEYS

if TYPE_CHECKING:
    from services.common.dry_run import DryRun

# ruff: noqa: PLC0415 - each command imports what it asks and shows with: it takes time and memory

_JSON = typer.Option("--json", help="As JSON.")
_VirtualHost = Annotated[str, typer.Option("--vhost", help="Virtual host.")]


def add_to(app: typer.Typer) -> None:
    """The commands become `app`'s."""
    app.command()(trace)
    app.command()(route)


def trace(
    id: Annotated[  # noqa: A002 - as it is called on the command line
        str, typer.Argument(help="Message id, correlation id, trace id or uid.", show_default=False)
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="Every message that has the id, of all time.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=MOST_JOURNEYS, help="At most so many messages.")] = 10,
    queue: Annotated[str, typer.Option("--follow", metavar="QUEUE", help="What happens in a queue, live.")] = "",
    virtual_host: _VirtualHost = "/",
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Shows the way of a message, from the ledger: every stage, before and after every dead-lettering."""
    if bool(id) == bool(queue):
        fail("an id, or --follow QUEUE: one of them is wanted", status=2)
    if queue:
        _follow(virtual_host, queue, as_json=as_json)
    else:
        _trace(id, limit, every=every, as_json=as_json)


def route(
    exchange: Annotated[str, typer.Option(help="Empty: the default exchange.")] = "",
    key: Annotated[str, typer.Option(help="Routing key.")] = "",
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TEXT", help="A header; NAME:=JSON for a number, a boolean or null. Repeatable."),
    ] = None,
    virtual_host: _VirtualHost = "/",
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Shows where a message would go, and by which bindings, without sending it."""
    from services.common.cli.console import stdout_console
    from services.common.cli.route import show
    from services.common.clients.dry_run import DryRunClient
    from services.common.dry_run import parse_headers
    from services.common.errors import SyntaxFault
    from services.common.printable import printable_json

    try:
        headers = parse_headers(header or ())
    except SyntaxFault as error:
        fail(error.text, status=2)
    address = read_settings().address_of("router")

    async def ask() -> DryRun:
        async with DryRunClient(address) as client:
            return await client.route(virtual_host, exchange, key, headers)

    found = run(ask(), address)
    if as_json:
        typer.echo(printable_json(found.model_dump_json(indent=2)))
    else:
        show(found, stdout_console())


def _trace(asked: str, limit: int, *, every: bool, as_json: bool) -> None:
    from services.common.cli.console import stdout_console
    from services.common.cli.trace import show
    from services.common.printable import printable_json
    from services.common.trace import nothing

    found = on_mgmt(lambda client: client.trace(asked, limit, everything=every))
    if as_json:
        typer.echo(printable_json(found.model_dump_json(indent=2)))
    elif found.journeys:
        show(found, stdout_console(), every=every)
    if not found.journeys:
        fail(nothing(asked, found))


def _follow(virtual_host: str, queue: str, *, as_json: bool) -> None:
    from services.common import log
    from services.common.cli.console import stdout_console
    from services.common.cli.ledger import Following, show

    configured = read_settings()
    address = read_bus_address(configured)
    log.configure("trace", configured.log_format, configured.log_level)
    try:
        run(show(address, Following(virtual_host, queue), stdout_console(), as_json=as_json), "the event bus")
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
