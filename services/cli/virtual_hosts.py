"""`hopline vhosts`: virtual hosts of the running stack."""

from __future__ import annotations

from typing import Annotated

import typer

from services.cli.completing import virtual_hosts
from services.cli.listing import AsLines, show_rows
from services.cli.talking import on_router

# ruff: noqa: PLC0415 - as in services/__main__.py

vhosts = typer.Typer(no_args_is_help=True, help="Virtual hosts of the running stack.")


@vhosts.command("add")
def add_virtual_host(name: str) -> None:
    """Adds a virtual host with its predeclared exchanges; one that is there stays as it is."""
    on_router(lambda client: client.create(name), "adding")


@vhosts.command("delete")
def delete_virtual_host(
    name: Annotated[str, typer.Argument(metavar="VHOST", autocompletion=virtual_hosts)],
) -> None:
    """Deletes a virtual host with everything in it."""
    on_router(lambda client: client.delete(name), "deleting")


@vhosts.command("list")
def list_virtual_hosts(as_json: AsLines = False) -> None:
    """Lists virtual hosts."""
    from services.cli.columns import VIRTUAL_HOSTS

    found = on_router(lambda client: client.list())
    show_rows(({"name": name} for name in found), VIRTUAL_HOSTS, as_json=as_json)
