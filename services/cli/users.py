"""`hopline users`: users of the running stack."""

from __future__ import annotations

from typing import Annotated

import typer

from services.cli.password import read_password
from services.cli.talking import on_mgmt

# ruff: noqa: PLC0415 - as in services/__main__.py

users = typer.Typer(no_args_is_help=True, help="Users of the running stack.")


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
    """Adds a user, or replaces one of that name; asks for the password when none is given.

    A new user may do nothing until told: hopline permissions set.
    """
    said = read_password(password, password_file)
    on_mgmt(lambda client: client.put_user(name, said, tag or (), loopback_only=loopback_only))


@users.command("tags")
def set_tags(name: str, tag: Annotated[list[str] | None, typer.Argument(help="None: it has none.")] = None) -> None:
    """Gives a user these tags in place of those that it has: administrator, monitoring, policymaker, management."""
    on_mgmt(lambda client: client.set_tags(name, tag or ()))


@users.command("delete")
def delete_user(name: str) -> None:
    """Deletes a user, and what it may do; its connections end."""
    on_mgmt(lambda client: client.delete_user(name))


@users.command("list")
def list_users() -> None:
    """Lists users with their tags."""
    from services.common.printable import printable

    for user in on_mgmt(lambda client: client.list_users()):
        where = "\tloopback only" if user.loopback_only else ""
        typer.echo(f"{printable(user.name)}\t{printable(','.join(user.tags))}{where}")
