"""`hopline users`: users of the running stack."""

from __future__ import annotations

from typing import Annotated

import typer

from services.cli import completing
from services.cli.listing import AsLines, show_rows
from services.cli.password import read_password
from services.cli.talking import on_mgmt
from services.common.access.tags import KNOWN

# ruff: noqa: PLC0415 - as in services/__main__.py

users = typer.Typer(no_args_is_help=True, help="Users of the running stack.")


_Name = Annotated[str, typer.Argument(metavar="USER", autocompletion=completing.users)]
_Password = Annotated[
    str | None,
    typer.Option(help="Seen for a moment by everyone who lists the processes of this machine: better in a file."),
]
_PasswordFile = Annotated[str | None, typer.Option(metavar="FILE", help="Holds the password; - is standard input.")]
_Kind = Annotated[
    str,
    typer.Option(
        help="How the password is kept: argon2; recoverable, for CRAM-MD5; or as --hashed says.",
        autocompletion=completing.kinds("credential_kinds"),
    ),
]
_Hashed = Annotated[
    bool, typer.Option("--hashed", help="What is given is a hash of that kind, as rabbitmq-sha256:BASE64.")
]
_TAG = completing.words(*KNOWN)
_Tags = Annotated[
    list[str] | None,
    typer.Option(help="What the user may do beyond messaging; repeatable.", autocompletion=_TAG),
]


@users.command("add")
def add_user(
    name: str,
    password: _Password = None,
    password_file: _PasswordFile = None,
    tag: _Tags = None,
    loopback_only: Annotated[bool, typer.Option("--loopback-only", help="May log in from this machine only.")] = False,
    kind: _Kind = "argon2",
    hashed: _Hashed = False,
) -> None:
    """Adds a user, or replaces one of that name, whose connections end; asks for the password when none is given.

    A new user may do nothing until it has permissions: hopline permissions set.
    """
    said = read_password(password, password_file)
    on_mgmt(
        lambda client: client.put_user(name, said, tag or (), loopback_only=loopback_only, kind=kind, hashed=hashed)
    )


@users.command("change")
def change_user(
    name: _Name,
    password: _Password = None,
    password_file: _PasswordFile = None,
    new_password: Annotated[bool, typer.Option("--new-password", help="Asks for a password.")] = False,
    tag: _Tags = None,
    no_tags: Annotated[bool, typer.Option("--no-tags", help="Remove all tags.")] = False,
    loopback_only: Annotated[
        bool | None, typer.Option("--loopback-only/--from-anywhere", help="Where the user may log in from.")
    ] = None,
    kind: _Kind = "argon2",
    hashed: _Hashed = False,
) -> None:
    """Changes what is given of a user, and closes its open connections; the rest stays."""
    asked = new_password or password is not None or password_file is not None
    said = read_password(password, password_file) if asked else None
    tags = () if no_tags else tag or None
    on_mgmt(
        lambda client: client.change_user(
            name, password=said, tags=tags, loopback_only=loopback_only, kind=kind, hashed=hashed
        )
    )


@users.command("tags")
def set_tags(
    name: _Name,
    tag: Annotated[list[str] | None, typer.Argument(help="None: it has none.", autocompletion=_TAG)] = None,
) -> None:
    """Gives a user these tags in place of those that it has: administrator, monitoring, policymaker, management."""
    on_mgmt(lambda client: client.set_tags(name, tag or ()))


@users.command("delete")
def delete_user(name: _Name) -> None:
    """Deletes a user with its permissions; its connections are closed."""
    on_mgmt(lambda client: client.delete_user(name))


@users.command("list")
def list_users(as_json: AsLines = False) -> None:
    """Lists users with their tags."""
    from services.cli.columns import USERS

    found = on_mgmt(lambda client: client.list_users())
    rows = ({"name": each.name, "tags": list(each.tags), "loopback_only": each.loopback_only} for each in found)
    show_rows(rows, USERS, as_json=as_json)
