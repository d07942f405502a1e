"""The command line, and the one place that knows all services: each command imports only what it runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from socket import gethostname
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli import by_hand, messages, quick, watching
from services.cli.asking import fail, read_settings, run

if TYPE_CHECKING:
    from services.common import runtime
    from services.common.config import Settings

# ruff: noqa: PLC0415 - a command imports what it runs: imports take time, for which a person would wait

_USED_BY_SEVERAL = ("exchange_types", "message_formats", "overflow_policies", "queue_types")  # groups of plug-ins
_LARGE = 16 << 20  # bytes: a password is verified in more, and a body has less, for which memory is to be at hand
_LARGE_IN_MGMT = 1 << 20  # where no messages pass
_BESIDE_MESSAGES = 5  # niceness: what files and looks up takes the time that processes with messages leave

# The module that has each, under its own name.
_GROUPS = {
    "queues": "queues",
    "exchanges": "exchanges",
    "bindings": "bindings",
    "connections": "connections",
    "consumers": "connections",
    "policies": "policies",
    "users": "users",
    "permissions": "permissions",
    "groups": "groups",
    "limits": "limits",
    "acl": "acl",
    "providers": "providers",
    "partitions": "placing",
    "vhosts": "virtual_hosts",
    "definitions": "definitions",
}

app = quick.Quick(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Hopline, a message broker of five services.",
)
messages.add_to(app)
by_hand.add_to(app)
watching.add_to(app)


# ------------------------------------------------------------------ the stack and its services


@app.command()
def up() -> None:
    """Runs the whole stack on this machine until Ctrl-C.

    Its settings are environment variables, such as HOPLINE_DATA and HOPLINE_AMQP_PORT: docs/settings.md has all.
    """
    from services.common import log
    from services.supervisor.forks import Forks
    from services.supervisor.up import up as run_stack

    settings = read_settings()
    forks = Forks.begin(_import_services, app)  # while nothing is open or runs: its children would have it too
    log.configure("supervisor", settings.log_format, settings.log_level)
    try:
        status = run(run_stack(settings, typer.echo, forks.start))
    finally:
        forks.end()
    raise typer.Exit(status)


@app.command()
def gateway(
    name: Annotated[str, typer.Option(help="One that no other gateway on this machine has: gateway-<something>.")] = (
        "gateway"
    ),
) -> None:
    """Runs a gateway: clients connect here."""
    from services.common import heap

    def create(settings: Settings) -> runtime.Service:
        from services.gateway.service import Service

        return Service(settings, name)

    if name != "gateway" and not name.startswith("gateway-"):
        fail(f"--name {name}: a gateway is called gateway, or gateway-<something>", status=2)
    heap.return_large(_LARGE)
    _serve(name, create)


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


def _store(name: str) -> None:
    def create(settings: Settings) -> runtime.Service:
        from services.store.service import Service

        return Service(settings, name=name)

    if name != "store" and not name.startswith("store-"):
        fail(f"--name {name}: a store process is called store, or store-<something>", status=2)
    _serve(name, create)


@app.command()
def mgmt() -> None:
    """Runs the management service: users, health of the stack."""

    def create(settings: Settings) -> runtime.Service:
        from services.mgmt.service import Service

        return Service(settings)

    from services.common import heap
    from services.common.absent import do_without

    os.nice(_BESIDE_MESSAGES)
    # Arrow and DuckDB import them where they are installed, for 45 MB, though nothing here hands them any.
    do_without("numpy", "pandas")
    heap.share_arena()
    heap.small_pages()
    heap.return_large(_LARGE_IN_MGMT)
    _serve("mgmt", create)


@app.command()
def nats(
    host: Annotated[str, typer.Option(help="Where it listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option()] = 4222,
    monitor_port: Annotated[int, typer.Option(help="Port of NATS's own health over HTTP; 0: none.")] = 0,
    peers: Annotated[str, typer.Option(help="All servers of the cluster, this one too: host,host,host.")] = "",
    name: Annotated[str, typer.Option(help="Of this server among those.")] = "",
    cluster_port: Annotated[int, typer.Option(help="Where it listens for those.")] = 6222,
) -> None:
    """Runs the NATS server for the bus and the ledger, open to clients with the stack's secret; `up` runs its own."""
    from services.common.bus.server import Cluster, command
    from services.common.runtime import CannotStart

    settings = read_settings()
    cluster = Cluster(name or gethostname(), cluster_port, peers.split(",")) if peers else None
    try:
        server = command(settings.data, host, port, cluster)
    except CannotStart as error:
        fail(str(error))
    monitor = ("--http_port", str(monitor_port)) if monitor_port else ()
    os.execv(server[0], (*server, *monitor))  # noqa: S606 - a command of ours, and no shell


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def analyse(context: typer.Context) -> None:
    """Analyses the ledger with Apache Spark: hopline analyse --help."""
    from spark.cli import app as analyses

    quick.works()
    analyses(context.args, prog_name="hopline analyse")


@app.command()
def version() -> None:
    """Prints the release."""
    from services.common.release import RELEASE

    typer.echo(RELEASE)


# ------------------------------------------------------------------ groups of commands


def _group(module: str, attribute: str) -> typer.Typer:
    found: typer.Typer = getattr(import_module(f"services.cli.{module}"), attribute)
    return found


for _name, _module in _GROUPS.items():
    app.add_group(_name, partial(_group, _module, _name))


def _tracing() -> typer.Typer:
    from services.cli.talking import on_tracing
    from services.cli.tracing import commands

    return commands(on_tracing)


def _capture() -> typer.Typer:
    from services.cli.capture import commands
    from services.cli.talking import on_capture

    return commands(on_capture)


def _ports() -> typer.Typer:
    from services.cli.ports import commands
    from services.cli.talking import on_ports

    return commands(on_ports)


def _store_and_its_commands() -> typer.Typer:
    from services.cli.storing import commands

    return commands(_store)


app.add_group("tracing", _tracing)
app.add_group("capture", _capture)
app.add_group("ports", _ports)
app.add_group("store", _store_and_its_commands)


# ------------------------------------------------------------------ what commands share


def _serve(name: str, create: Callable[[Settings], runtime.Service]) -> None:
    from services.common import grpc_channel, log, memory, runtime, secret
    from services.common.clients import log_rules
    from services.common.errors import BrokerError, with_notes
    from services.supervisor.parent import die_with_parent

    quick.works()
    die_with_parent()
    settings = read_settings()
    memory.count_with(settings.memory)
    log.configure(name, settings.log_format, settings.log_level)
    if settings.store_processes > 1:
        grpc_channel.doubt_silence()

    async def created() -> runtime.Service:
        # A service is called by others with the secret, and has to know it before they call.
        secret.known()
        return create(settings)

    try:
        runtime.run(created, lambda: log_rules.follow(settings.address_of("store"), settings.log_level))
    except (BrokerError, OSError, runtime.CannotStart) as error:
        log.write_out()
        typer.echo(f"{name} cannot run: {with_notes(error)}", err=True)
        # What it had opened goes with the process; destructors could only complain that the loop is closed.
        os._exit(1)
    finally:
        log.write_out()  # whatever ended it: a thread may keep the process, and a fault's traceback comes behind it


def _import_services() -> None:
    """What each of them would do at its start."""
    from services.common import plugins

    import_module("services.supervisor.up")
    for name in ("store", "router", "queue", "gateway", "mgmt"):
        import_module(f"services.{name}.service")
    for group in _USED_BY_SEVERAL:
        for kind in plugins.names(group):
            plugins.load(group, kind)


if __name__ == "__main__":
    app()
