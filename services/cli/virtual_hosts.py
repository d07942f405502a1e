"""`hopline vhosts`: virtual hosts of the running stack."""

from __future__ import annotations

from typing import Annotated

import typer

from services.cli.completing import virtual_hosts
from services.cli.listing import AsLines, show_list
from services.cli.talking import on_objects, on_router

# ruff: noqa: PLC0415 - as in services/__main__.py

vhosts = typer.Typer(no_args_is_help=True, help="Virtual hosts of the running stack.")


@vhosts.command("add")
def add_virtual_host(
    name: str,
    description: Annotated[str | None, typer.Option(help="What it is for.", show_default=False)] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Repeatable.")] = None,
) -> None:
    """Adds a virtual host with its predeclared exchanges; of one that is there only what is said here is changed."""
    on_router(lambda client: client.create(name), "adding")
    every = {"description": description, "tags": tag or None}
    said = {key: value for key, value in every.items() if value is not None}
    if said:
        from services.rpc import objects_pb2 as pb

        on_objects(lambda client: client.declare(pb.VIRTUAL_HOST, name, name, said))


@vhosts.command("delete")
def delete_virtual_host(
    name: Annotated[str, typer.Argument(metavar="VHOST", autocompletion=virtual_hosts)],
) -> None:
    """Deletes a virtual host with everything in it."""
    on_router(lambda client: client.delete(name), "deleting")


@vhosts.command("list")
def list_virtual_hosts(as_json: AsLines = False) -> None:
    """Lists virtual hosts with what is said of them."""
    from services.cli.columns import VIRTUAL_HOSTS
    from services.rpc import objects_pb2 as pb

    show_list(pb.ListRequest(kind=pb.VIRTUAL_HOST), VIRTUAL_HOSTS, None, as_json=as_json)
