"""`hopline queues`: what there is, how full it is, and changes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.changing import change_each
from services.cli.completing import names
from services.cli.listing import AnyHost, AsJson, AsLines, Descending, Host, Most, Order, Where, show_json, show_list
from services.cli.talking import on_objects
from services.cli.told import Arguments, table

if TYPE_CHECKING:
    from services.common.clients.objects import ObjectsClient

# ruff: noqa: PLC0415 - as in listing.py

queues = typer.Typer(no_args_is_help=True, help="Queues of the running stack.")

_Name = Annotated[str, typer.Argument(metavar="QUEUE", autocompletion=names("QUEUE"))]
_Names = Annotated[list[str], typer.Argument(metavar="QUEUE…", autocompletion=names("QUEUE"))]


@queues.command("list")
def list_queues(
    pattern: Annotated[str, typer.Argument(help="Of names, with * and ?.")] = "",
    virtual_host: AnyHost = None,
    where: Where = None,
    sort: Order = "",
    descending: Descending = False,
    limit: Most = 0,
    as_json: AsLines = False,
) -> None:
    """Lists queues with their counts, which are five seconds old at most."""
    from services.cli.columns import QUEUES
    from services.rpc import objects_pb2 as pb

    request = pb.ListRequest(kind=pb.QUEUE, virtual_host=virtual_host, sort=sort, descending=descending, most=limit)
    show_list(request, QUEUES, where, pattern, as_json=as_json)


@queues.command("show")
def show_queue(name: _Name, virtual_host: Host = "/", as_json: AsJson = False) -> None:
    """Shows a queue with its consumers and bindings."""
    from services.cli.columns import BINDINGS, CONSUMERS
    from services.cli.console import say
    from services.cli.details import detail_lines
    from services.rpc import objects_pb2 as pb

    row = on_objects(lambda client: client.show(pb.QUEUE, virtual_host, name))
    if as_json:
        show_json(row)
    else:
        say(detail_lines(row, {"consumer_details": CONSUMERS[2:], "bindings": BINDINGS}))


@queues.command("declare")
def declare_queue(
    name: Annotated[str, typer.Argument(metavar="QUEUE")],
    virtual_host: Host = "/",
    transient: Annotated[bool, typer.Option("--transient", help="Deleted when the store stops.")] = False,
    auto_delete: Annotated[bool, typer.Option("--auto-delete", help="Deleted with its last consumer.")] = False,
    argument: Arguments = None,
) -> None:
    """Declares a queue, durable unless told otherwise. An existing one has to be the same."""
    from services.rpc import objects_pb2 as pb

    told = {"durable": not transient, "auto_delete": auto_delete, "arguments": table(argument)}
    created = on_objects(lambda client: client.declare(pb.QUEUE, virtual_host, name, told))
    typer.echo("declared" if created else "it was there already")


@queues.command("delete")
def delete_queues(
    name: _Names,
    virtual_host: Host = "/",
    if_unused: Annotated[bool, typer.Option("--if-unused", help="Only if it has no consumers.")] = False,
    if_empty: Annotated[bool, typer.Option("--if-empty", help="Only if it is empty.")] = False,
) -> None:
    """Deletes queues, with the messages in them."""
    from services.rpc import objects_pb2 as pb

    async def delete(client: ObjectsClient, each: str) -> str:
        request = pb.DeleteRequest(kind=pb.QUEUE, virtual_host=virtual_host, name=each)
        request.if_unused, request.if_empty = if_unused, if_empty
        return f"deleted, with {await client.delete(request)} messages"

    change_each("deleting", name, delete)


@queues.command("purge")
def purge_queues(name: _Names, virtual_host: Host = "/") -> None:
    """Deletes the waiting messages of queues; consumers keep those that they hold."""

    async def purge(client: ObjectsClient, each: str) -> str:
        return f"{await client.purge(virtual_host, each)} messages are gone"

    change_each("purging", name, purge)
