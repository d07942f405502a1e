"""`hopline connections` and `hopline consumers`: lists of both, and closing a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.changing import change_each
from services.cli.completing import names, users
from services.cli.listing import AnyHost, AsJson, AsLines, Descending, Most, Order, Where, show_json, show_list
from services.cli.talking import on_objects

if TYPE_CHECKING:
    from services.common.clients.objects import ObjectsClient

# ruff: noqa: PLC0415 - as in listing.py

connections = typer.Typer(no_args_is_help=True, help="Connections to the running stack.")
consumers = typer.Typer(no_args_is_help=True, help="Consumers of queues.")

_Name = Annotated[str, typer.Argument(metavar="CONNECTION", autocompletion=names("CONNECTION"))]
_Names = Annotated[list[str], typer.Argument(metavar="CONNECTION…", autocompletion=names("CONNECTION"))]


@connections.command("list")
def list_connections(
    virtual_host: AnyHost = None,
    user: Annotated[str, typer.Option(metavar="PATTERN", help="Of users of such names.", autocompletion=users)] = "",
    client: Annotated[str, typer.Option(metavar="PATTERN", help="Of applications that call themselves so.")] = "",
    where: Where = None,
    sort: Order = "",
    descending: Descending = False,
    limit: Most = 0,
    as_json: AsLines = False,
) -> None:
    """Lists the connections of all gateways that answer."""
    from services.cli.columns import CONNECTIONS
    from services.rpc import objects_pb2 as pb

    fits = {name: pattern for name, pattern in (("user", user), ("user_provided_name", client)) if pattern}
    request = pb.ListRequest(kind=pb.CONNECTION, virtual_host=virtual_host, most=limit, fits=fits)
    request.sort, request.descending = sort, descending
    show_list(request, CONNECTIONS, where, as_json=as_json)


@connections.command("show")
def show_connection(name: _Name, as_json: AsJson = False) -> None:
    """Shows a connection with its channels; AMQP 1.0 calls them sessions."""
    from services.cli.columns import CHANNELS
    from services.cli.console import say
    from services.cli.details import detail_lines
    from services.rpc import objects_pb2 as pb

    row = on_objects(lambda client: client.show(pb.CONNECTION, "", name))
    if as_json:
        show_json(row)
    else:
        say(detail_lines(row, {"channel_details": CHANNELS}))


@connections.command("close")
def close_connections(
    name: _Names,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="The reason that the client gets.")
    ] = "Closed by an operator",
) -> None:
    """Closes connections. Unacknowledged messages are requeued; clients may connect again."""

    async def close(client: ObjectsClient, each: str) -> str:
        await client.close_connection(each, reason)
        return "closed"

    change_each("closing", name, close)


@consumers.command("list")
def list_consumers(
    queue: Annotated[
        str, typer.Argument(metavar="PATTERN", help="Of queues of such names.", autocompletion=names("QUEUE"))
    ] = "",
    virtual_host: AnyHost = None,
    where: Where = None,
    sort: Order = "",
    descending: Descending = False,
    limit: Most = 0,
    as_json: AsLines = False,
) -> None:
    """Lists consumers with their queues: five seconds old at most."""
    from services.cli.columns import CONSUMERS
    from services.rpc import objects_pb2 as pb

    fits = {"queue.name": queue} if queue else {}
    request = pb.ListRequest(kind=pb.CONSUMER, virtual_host=virtual_host, most=limit, fits=fits)
    request.sort, request.descending = sort, descending
    show_list(request, CONSUMERS, where, as_json=as_json)
