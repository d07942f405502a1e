"""`hopline trace` and `hopline route`: where messages went, go, and would go."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.cli import completing
from services.cli.asking import fail, read_bus_address, read_settings, run
from services.cli.talking import on_mgmt
from services.common.clock import epoch_ms
from services.common.question import FATES, MOST_JOURNEYS, WHERE_CONCLUDED, Sought, moment_us

if TYPE_CHECKING:
    from services.common.clients.mgmt import MgmtClient
    from services.common.config import Settings
    from services.common.dry_run import DryRun
    from services.common.trace import Trace

# ruff: noqa: PLC0415 - each command imports what it asks and shows with: it takes time and memory

_JSON = typer.Option("--json", help="As JSON.")
_VirtualHost = Annotated[
    str, typer.Option("--vhost", metavar="NAME", help="Virtual host.", autocompletion=completing.virtual_hosts)
]
_QUEUES = completing.names("QUEUE")
_Queue = Annotated[str, typer.Option(metavar="PATTERN", help="Messages that came to a queue.", autocompletion=_QUEUES)]
_NOT_CAPTURED = (
    "nothing of it is captured: no rule wanted it, it was left out for want of room (hopline capture list), or it was "
    "too old to be kept"
)
_Follow = Annotated[str, typer.Option(metavar="QUEUE", help="What happens in a queue, live.", autocompletion=_QUEUES)]
_Fate = Annotated[
    str,
    typer.Option(
        metavar="FATE",
        help=f"What became of them: {', '.join(FATES)}. {WHERE_CONCLUDED}.",
        autocompletion=completing.words(*FATES),
    ),
]


def add_to(app: typer.Typer) -> None:
    """The commands become `app`'s."""
    app.command()(trace)
    app.command()(route)


def trace(
    id: Annotated[  # noqa: A002 - as it is called on the command line
        str, typer.Argument(help="Message id, correlation id, trace id or uid.", show_default=False)
    ] = "",
    queue: _Queue = "",
    client: Annotated[
        str,
        typer.Option(
            metavar="PATTERN",
            help="Their publisher: name of the application, user, address or connection. Of a dead "
            "letter, who published it at first.",
        ),
    ] = "",
    consumer: Annotated[str, typer.Option(metavar="PATTERN", help="Their consumer: its tag, or as a client.")] = "",
    key: Annotated[str, typer.Option(metavar="PATTERN", help="Their routing key.")] = "",
    fate: _Fate = "",
    since: Annotated[str, typer.Option(metavar="TIME", help="90s, 15m, 2h or 1d ago, or 2026-11-23T08:00.")] = "",
    until: Annotated[str, typer.Option(metavar="TIME", help="The same; before it.")] = "",
    every: Annotated[bool, typer.Option("--all", help="The way of each; with an id, in the whole record.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=MOST_JOURNEYS, help="At most so many messages.")] = 10,
    payload: Annotated[bool, typer.Option("--payload", help="Of an id: with what was captured of it.")] = False,
    follow: _Follow = "",
    virtual_host: _VirtualHost = "/",
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Shows the way of a message, from the ledger: every stage, before and after every dead-lettering.

    By an id, or the newest to which all options apply, with * and ? in names. With --follow what happens from now on:
    --client, --consumer and --key pick those that were published, or sent, since it began. With --json each line has
    the fields of a stage, and the uids and ids of its messages.
    """
    sought = Sought(virtual_host, follow or queue, client, consumer, key, fate, _moment(since), _moment(until))
    wanted = [bool(id), bool(sought)]
    if wanted.count(True) != 1 or (follow and (queue or since or until)):
        fail("an id, or options that say what messages have in common, or --follow QUEUE with --client, …", status=2)
    if fault := "" if id else sought.fault():
        fail(fault, status=2)
    if payload and not id:
        fail("--payload goes with an id", status=2)
    if follow:
        _follow(sought, as_json=as_json)
    else:
        _trace(id or sought, limit, every=every, payloads=payload, as_json=as_json)


def route(
    exchange: Annotated[
        str, typer.Option(help="Empty: the default exchange.", autocompletion=completing.names("EXCHANGE"))
    ] = "",
    key: Annotated[str, typer.Option(help="Routing key.")] = "",
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TEXT", help="A header; NAME:=JSON for a number, a boolean or null. Repeatable."),
    ] = None,
    virtual_host: _VirtualHost = "/",
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Shows where a message would go, and by which bindings, without sending it."""
    from services.cli.console import stdout_console
    from services.cli.route import show
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


def _moment(text: str) -> int:
    try:
        return moment_us(text, epoch_ms() * 1000) if text else 0
    except ValueError as error:
        fail(str(error), status=2)


def _trace(asked: str | Sought, limit: int, *, every: bool, payloads: bool, as_json: bool) -> None:
    from services.common.printable import printable, printable_json
    from services.common.trace import nothing

    def ask(client: MgmtClient) -> Coroutine[Any, Any, Trace]:
        if isinstance(asked, Sought):
            return client.search(asked, limit)
        return client.trace(asked, limit, everything=every, payloads=payloads)

    found = on_mgmt(ask, "looking up")
    if as_json:
        typer.echo(printable_json(found.model_dump_json(indent=2)))
    elif found.journeys:
        _show(found, every=every, payloads=payloads)
    if not found.journeys:
        fail(printable(nothing(asked, found)))


def _show(found: Trace, *, every: bool, payloads: bool) -> None:
    from services.cli.console import stdout_console
    from services.cli.trace import show

    show(found, stdout_console(), every=every or payloads)
    if payloads and not any(message.payloads for journey in found.journeys for message in journey.messages):
        typer.echo(_NOT_CAPTURED, err=True)


def _follow(sought: Sought, *, as_json: bool) -> None:
    from services.cli.console import stdout_console
    from services.cli.following import Following
    from services.cli.introducing import introduce
    from services.cli.ledger import show
    from services.common import log

    configured = read_settings()
    address = read_bus_address(configured)
    log.configure("trace", configured.log_format, configured.log_level)
    try:
        _say_if_away(configured, sought)
        following = Following(sought)
        ready = partial(introduce, following, configured.address_of("mgmt"))
        run(show(address, following, stdout_console(), as_json=as_json, ready=ready), "the event bus")
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _say_if_away(settings: Settings, sought: Sought) -> None:
    """Warns where there is no such queue: it may be declared at any time, or its name be mistyped."""
    from services.cli.queue_there import is_there
    from services.common.printable import printable

    if not run(is_there(settings, sought.virtual_host, sought.queue)):
        where = printable(f"queue '{sought.queue}' in virtual host '{sought.virtual_host}'")
        typer.echo(f"there is no {where} now; lines come when it is declared", err=True)
