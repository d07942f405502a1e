"""The command line, and the one place that knows all services: each command imports only what it runs."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine
from importlib import import_module
from importlib.metadata import version as version_of
from socket import gethostname
from typing import Annotated, Any, TypeVar

import typer

from services.common import log, plugins, runtime, secret
from services.common.bus.subject import ALL
from services.common.cli import messages
from services.common.cli.asking import fail, read_bus_address, read_settings, run
from services.common.cli.health import health_lines
from services.common.cli.password import read_password
from services.common.cli.tracing import commands as tracing_commands
from services.common.clients.mgmt import MgmtClient
from services.common.clients.placement import Placed, PlacementClient
from services.common.clients.tracing import TracingClient
from services.common.clients.virtual_hosts import VirtualHostsClient
from services.common.config import Settings
from services.common.errors import BrokerError
from services.common.printable import printable
from services.common.supervisor import healthz
from services.common.supervisor.forks import Forks
from services.common.supervisor.parent import die_with_parent
from services.common.supervisor.up import up as run_stack
from services.store.commands import commands as store_commands

# ruff: noqa: PLC0415 - a service's modules are imported by the command that runs it: they take time and memory

_Result = TypeVar("_Result")

_MOVE_SECONDS = 30.0
_BESIDE_MESSAGES = 5  # niceness: what files and looks up takes the time that those who carry messages leave

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Hopline, a message broker of five services.",
)
users = typer.Typer(no_args_is_help=True, help="Users of the running stack.")
app.add_typer(users, name="users")
partitions = typer.Typer(invoke_without_command=True, help="Who owns which partition of the running stack.")
app.add_typer(partitions, name="partitions")
vhosts = typer.Typer(no_args_is_help=True, help="Virtual hosts of the running stack.")
app.add_typer(vhosts, name="vhosts")
messages.add_to(app)


# ------------------------------------------------------------------ the stack and its services


@app.command()
def up() -> None:
    """Runs the whole stack on this machine until Ctrl-C."""
    settings = read_settings()
    forks = Forks.begin(_import_services, app)  # while nothing is open or runs: its children would have it too
    log.configure("supervisor", settings.log_format, settings.log_level)
    try:
        status = run(run_stack(settings, typer.echo, forks.start))
    finally:
        forks.end()
    raise typer.Exit(status)


@app.command()
def gateway() -> None:
    """Runs a gateway: clients connect here."""

    def create(settings: Settings) -> runtime.Service:
        from services.gateway.service import Service

        return Service(settings)

    _serve("gateway", create)


@app.command()
def router(
    name: Annotated[str, typer.Option(help="One that no other router on this machine has: router-<something>.")] = (
        "router"
    ),
) -> None:
    """Runs a router: exchanges, bindings, queue definitions. Of several, one writes."""

    def create(settings: Settings) -> runtime.Service:
        from services.router.service import Service

        return Service(settings, name)

    if name != "router" and not name.startswith("router-"):
        fail(f"--name {name}: a router is called router, or router-<something>", status=2)
    _serve(name, create)


@app.command()
def queue(
    name: Annotated[
        str,
        typer.Option(help="One that no other queue process has: queue-<something>.", show_default="queue-<hostname>"),
    ] = f"queue-{gethostname()}",
) -> None:
    """Runs one queue process: a share of the partitions."""

    def create(settings: Settings) -> runtime.Service:
        from services.queue.service import Service

        return Service(settings, name)

    if not name.startswith("queue-"):
        fail(f"--name {name}: a queue process is called queue-<something>", status=2)
    _serve(name, create)


def _store() -> None:
    def create(settings: Settings) -> runtime.Service:
        from services.store.service import Service

        return Service(settings)

    _serve("store", create)


@app.command()
def mgmt() -> None:
    """Runs the management service: users, health of the stack."""

    def create(settings: Settings) -> runtime.Service:
        from services.mgmt.service import Service

        return Service(settings)

    os.nice(_BESIDE_MESSAGES)
    _serve("mgmt", create)


@app.command()
def nats(
    host: Annotated[str, typer.Option(help="Where it listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option()] = 4222,
    monitor_port: Annotated[int, typer.Option(help="For NATS's own health over HTTP; 0: none.")] = 0,
) -> None:
    """Runs the NATS server for the bus and the ledger, open to who knows the stack's secret; `up` runs its own."""
    from services.common.bus.server import command

    settings = read_settings()
    try:
        server = command(settings.data, host, port)
    except runtime.CannotStart as error:
        fail(str(error))
    monitor = ("--http_port", str(monitor_port)) if monitor_port else ()
    os.execv(server[0], (*server, *monitor))  # noqa: S606 - a command of ours, and no shell


# ------------------------------------------------------------------ talking to a running stack


@users.command("add")
def add_user(
    name: str,
    password: Annotated[
        str | None, typer.Option(help="Seen by everyone who lists the processes of this machine: better in a file.")
    ] = None,
    password_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Holds the password; - is standard input.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="What the user may do beyond messaging; repeatable.")] = None,
    loopback_only: Annotated[bool, typer.Option("--loopback-only", help="May log in from this machine only.")] = False,
) -> None:
    """Adds a user, or replaces one of that name; asks for the password when none is given."""
    said = read_password(password, password_file)
    _on_mgmt(lambda client: client.put_user(name, said, tag or (), loopback_only=loopback_only))


@users.command("delete")
def delete_user(name: str) -> None:
    """Deletes a user; its open connections stay."""
    _on_mgmt(lambda client: client.delete_user(name))


@users.command("list")
def list_users() -> None:
    """Lists users with their tags."""
    for user in _on_mgmt(lambda client: client.list_users()):
        where = "\tloopback only" if user.loopback_only else ""
        typer.echo(f"{printable(user.name)}\t{printable(','.join(user.tags))}{where}")


@vhosts.command("add")
def add_virtual_host(name: str) -> None:
    """Adds a virtual host with its predeclared exchanges; one that is there stays as it is."""
    _on_router(lambda client: client.create(name))


@vhosts.command("delete")
def delete_virtual_host(name: str) -> None:
    """Deletes a virtual host with everything in it."""
    _on_router(lambda client: client.delete(name))


@vhosts.command("list")
def list_virtual_hosts() -> None:
    """Lists virtual hosts."""
    for name in _on_router(lambda client: client.list()):
        typer.echo(printable(name))


@app.command()
def health() -> None:
    """Says how each part of the running stack is, and each of its members; exit status 0 when all parts are well."""
    settings = read_settings()
    status, body = run(healthz.ask(settings.http_host, settings.http_port), f"HTTP port {settings.http_port}")
    for line in health_lines(body):
        typer.echo(line)
    raise typer.Exit(0 if status == 200 else 1)


@partitions.callback()
def list_partitions(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on each line.")] = False,
) -> None:
    """Says which queue process owns which partition."""
    if context.invoked_subcommand:
        return
    from services.common.cli.console import stdout_console
    from services.common.cli.partitions import show, show_json

    count = read_settings().partitions

    async def ask(client: PlacementClient) -> tuple[list[Placed], Counter[int] | None]:
        placed = await client.all(count)
        try:
            return placed, await client.queues()
        except BrokerError:  # owners are known without the router
            return placed, None

    placed, queues = _on_placement(ask)
    (show_json if as_json else show)(placed, queues, stdout_console())


@partitions.command("move")
def move_partitions(
    numbers: Annotated[str, typer.Argument(metavar="PARTITION[,PARTITION…]", help="For example 3, or 1,4, or 0-7.")],
    to: Annotated[
        str,
        typer.Argument(
            help="A queue process: queue-2, a member as listed, its container, the beginning of one, or an address."
        ),
    ],
) -> None:
    """Moves partitions to a queue process, where they stay as long as it lives."""
    found = _partitions(numbers)

    async def move(client: PlacementClient) -> str | None:
        member = await client.move(found, to)
        try:
            async with asyncio.timeout(_MOVE_SECONDS):
                await client.moved(found, member)
        except TimeoutError:
            return None
        return member

    member = _on_placement(move)
    if member is None:
        fail(f"asked for, and not done within {_MOVE_SECONDS:.0f} seconds; see `hopline partitions`")
    typer.echo(f"{len(found)} served by {member}")


@partitions.command("unpin")
def unpin_partitions(numbers: Annotated[str, typer.Argument(metavar="PARTITION[,PARTITION…]")]) -> None:
    """Lets partitions that were moved be shared as the others are."""
    found = _partitions(numbers)
    _on_placement(lambda client: client.unpin(found))


@app.command()
def events(
    subject: Annotated[str, typer.Option(help="NATS subject; services/common/bus/README.md has the tree.")] = ALL,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on each line.")] = False,
) -> None:
    """Follows what happens in the running stack, until Ctrl-C: queues, consumers, connections, leases."""
    from services.common.cli.console import stdout_console
    from services.common.cli.events import show, show_json

    address = read_bus_address(read_settings())
    try:
        run((show_json if as_json else show)(address, subject, stdout_console()), "the event bus")
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def analyse(context: typer.Context) -> None:
    """Analyses the ledger with Apache Spark: hopline analyse --help."""
    from spark.cli import app as analyses

    analyses(context.args, prog_name="hopline analyse")


@app.command()
def version() -> None:
    """Says which Hopline this is."""
    typer.echo(version_of("hopline"))


# ------------------------------------------------------------------ what commands share


def _serve(name: str, create: Callable[[Settings], runtime.Service]) -> None:
    die_with_parent()
    settings = read_settings()
    log.configure(name, settings.log_format, settings.log_level)

    async def created() -> runtime.Service:
        # Who serves hears it from others, and has to know it before they call.
        secret.known()
        return create(settings)

    try:
        runtime.run(created)
    except (BrokerError, OSError, runtime.CannotStart) as error:
        typer.echo(f"{name} cannot run: {error}", err=True)
        # What it had opened goes with the process; destructors could only complain that the loop is closed.
        os._exit(1)


def _import_services() -> None:
    """What each of them would do at its start."""
    for name in ("store", "router", "queue", "gateway", "mgmt"):
        import_module(f"services.{name}.service")
    plugins.names("protocols")


def _on_mgmt(call: Callable[[MgmtClient], Coroutine[Any, Any, _Result]]) -> _Result:
    address = read_settings().address_of("mgmt")

    async def talk() -> _Result:
        async with MgmtClient(address) as client:
            return await call(client)

    return run(talk(), address)


def _on_router(call: Callable[[VirtualHostsClient], Coroutine[Any, Any, _Result]]) -> _Result:
    address = read_settings().address_of("router")

    async def talk() -> _Result:
        async with VirtualHostsClient(address) as client:
            return await call(client)

    return run(talk(), address)


def _on_tracing(call: Callable[[TracingClient], Coroutine[Any, Any, _Result]]) -> _Result:
    address = read_settings().address_of("store")

    async def talk() -> _Result:
        async with TracingClient(address) as client:
            return await call(client)

    return run(talk(), address)


def _on_placement(call: Callable[[PlacementClient], Coroutine[Any, Any, _Result]]) -> _Result:
    settings = read_settings()

    async def talk() -> _Result:
        async with PlacementClient(settings.address_of("store"), settings.address_of("router")) as client:
            return await call(client)

    return run(talk(), settings.address_of("store"))


def _partitions(numbers: str) -> list[int]:
    from services.common.cli.partitions import parse

    try:
        return parse(numbers, read_settings().partitions)
    except ValueError as error:
        fail(str(error), status=2)


app.add_typer(tracing_commands(_on_tracing), name="tracing")
app.add_typer(store_commands(_store), name="store")


if __name__ == "__main__":
    app()
