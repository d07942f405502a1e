"""`hopline bindings`: by which keys messages go from exchanges to queues, and to other exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.cli.completing import destinations, names
from services.cli.listing import AnyHost, AsLines, Descending, Host, Most, Order, Where, show_list
from services.cli.talking import on_objects
from services.cli.told import Arguments, table

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from services.common.clients.objects import ObjectsClient
    from services.rpc import objects_pb2 as pb

# ruff: noqa: PLC0415 - as in listing.py

bindings = typer.Typer(no_args_is_help=True, help="Bindings of the running stack.")

_Source = Annotated[str, typer.Argument(metavar="EXCHANGE", autocompletion=names("EXCHANGE"))]
_Destination = Annotated[
    str, typer.Argument(metavar="TO", help="A queue, or with --to-exchange an exchange.", autocompletion=destinations)
]
_ToExchange = Annotated[bool, typer.Option("--to-exchange", help="The destination is an exchange.")]
_Key = Annotated[str, typer.Option(help="Routing key; with * and # for a topic exchange.")]


@bindings.command("list")
def list_bindings(
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PATTERN",
            help="From exchanges of such names; '' is the default one.",
            autocompletion=names("EXCHANGE"),
        ),
    ] = None,
    destination: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="PATTERN",
            help="To queues and exchanges of such names.",
            autocompletion=destinations,
        ),
    ] = None,
    virtual_host: AnyHost = None,
    where: Where = None,
    sort: Order = "",
    descending: Descending = False,
    limit: Most = 0,
    as_json: AsLines = False,
) -> None:
    """Lists bindings, also that of every queue with the default exchange."""
    from services.cli.columns import BINDINGS
    from services.rpc import objects_pb2 as pb

    wanted = {"source": source, "destination": destination}
    fits = {name: pattern for name, pattern in wanted.items() if pattern is not None}
    request = pb.ListRequest(kind=pb.BINDING, virtual_host=virtual_host, most=limit, fits=fits)
    request.sort, request.descending = sort, descending
    show_list(request, BINDINGS, where, as_json=as_json)


def _add_change(
    name: str, done: str, call: Callable[[ObjectsClient, pb.BindRequest], Coroutine[Any, Any, Any]], what: str
) -> None:
    @bindings.command(name, help=what)
    def change(
        source: _Source,
        destination: _Destination,
        key: _Key = "",
        to_exchange: _ToExchange = False,
        virtual_host: Host = "/",
        argument: Arguments = None,
    ) -> None:
        request = _request(source, destination, virtual_host, key, argument, to_exchange=to_exchange)
        on_objects(lambda client: call(client, request))
        typer.echo(done)


_add_change(
    "bind",
    "bound",
    lambda client, request: client.bind(request),
    "Has messages go from an exchange to a queue, or to another exchange.",
)
_add_change(
    "unbind",
    "unbound",
    lambda client, request: client.unbind(request),
    "Ends a binding: the one with the same key and arguments.",
)


def _request(
    source: str, destination: str, virtual_host: str, key: str, argument: list[str] | None, *, to_exchange: bool
) -> pb.BindRequest:
    import json

    from services.rpc import objects_pb2 as pb

    told = json.dumps({"routing_key": key, "arguments": table(argument)}, ensure_ascii=False).encode()
    return pb.BindRequest(
        virtual_host=virtual_host, source=source, destination=destination, to_exchange=to_exchange, told=told
    )
