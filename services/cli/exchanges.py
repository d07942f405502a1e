"""`hopline exchanges`: what there is, and changes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.changing import change_each
from services.cli.completing import kinds, names
from services.cli.listing import AnyHost, AsJson, AsLines, Descending, Host, Most, Order, Where, show_json, show_list
from services.cli.talking import on_objects
from services.cli.told import Arguments, table

if TYPE_CHECKING:
    from services.common.clients.objects import ObjectsClient

# ruff: noqa: PLC0415 - as in listing.py

exchanges = typer.Typer(no_args_is_help=True, help="Exchanges of the running stack.")

_Name = Annotated[
    str, typer.Argument(metavar="EXCHANGE", help="'' is the default one.", autocompletion=names("EXCHANGE"))
]
_Names = Annotated[list[str], typer.Argument(metavar="EXCHANGE…", autocompletion=names("EXCHANGE"))]


@exchanges.command("list")
def list_exchanges(
    pattern: Annotated[str, typer.Argument(help="Of names, with * and ?.")] = "",
    virtual_host: AnyHost = None,
    where: Where = None,
    sort: Order = "",
    descending: Descending = False,
    limit: Most = 0,
    as_json: AsLines = False,
) -> None:
    """Lists exchanges, with those that every virtual host has."""
    from services.cli.columns import EXCHANGES
    from services.rpc import objects_pb2 as pb

    request = pb.ListRequest(kind=pb.EXCHANGE, virtual_host=virtual_host, sort=sort, descending=descending, most=limit)
    show_list(request, EXCHANGES, where, pattern, as_json=as_json)


@exchanges.command("show")
def show_exchange(name: _Name, virtual_host: Host = "/", as_json: AsJson = False) -> None:
    """Shows an exchange with its bindings."""
    from services.cli.columns import BINDINGS
    from services.cli.console import say
    from services.cli.details import detail_lines
    from services.rpc import objects_pb2 as pb

    row = on_objects(lambda client: client.show(pb.EXCHANGE, virtual_host, name))
    if as_json:
        show_json(row)
    else:
        say(detail_lines(row, {"bindings": BINDINGS}))


@exchanges.command("declare")
def declare_exchange(
    name: Annotated[str, typer.Argument(metavar="EXCHANGE")],
    kind: Annotated[
        str,
        typer.Option(
            "--type",
            help="direct, fanout, topic, headers, or a plug-in's.",
            autocompletion=kinds("exchange_types"),
        ),
    ] = "direct",
    virtual_host: Host = "/",
    transient: Annotated[bool, typer.Option("--transient", help="Deleted when the store stops.")] = False,
    auto_delete: Annotated[bool, typer.Option("--auto-delete", help="Deleted with its last binding.")] = False,
    internal: Annotated[bool, typer.Option("--internal", help="Clients cannot publish to it.")] = False,
    argument: Arguments = None,
) -> None:
    """Declares an exchange, durable unless told otherwise. An existing one has to be the same."""
    from services.rpc import objects_pb2 as pb

    told = {
        "type": kind,
        "durable": not transient,
        "auto_delete": auto_delete,
        "internal": internal,
        "arguments": table(argument),
    }
    created = on_objects(lambda client: client.declare(pb.EXCHANGE, virtual_host, name, told))
    typer.echo("declared" if created else "it was there already")


@exchanges.command("delete")
def delete_exchanges(
    name: _Names,
    virtual_host: Host = "/",
    if_unused: Annotated[bool, typer.Option("--if-unused", help="Only if nothing is bound to it.")] = False,
) -> None:
    """Deletes exchanges, with their bindings."""
    from services.rpc import objects_pb2 as pb

    async def delete(client: ObjectsClient, each: str) -> str:
        await client.delete(
            pb.DeleteRequest(kind=pb.EXCHANGE, virtual_host=virtual_host, name=each, if_unused=if_unused)
        )
        return "deleted"

    change_each("deleting", name, delete)
