"""`hopline groups`: users that rules may name together."""

from __future__ import annotations

from typing import Annotated

import typer

from services.cli import completing
from services.cli.listing import AsLines, show_rows
from services.cli.talking import on_mgmt

# ruff: noqa: PLC0415 - as in services/__main__.py

groups = typer.Typer(no_args_is_help=True, help="Groups of users, which rules may name (hopline acl).")


_Group = Annotated[str, typer.Argument(metavar="GROUP", autocompletion=completing.groups)]
_User = Annotated[str, typer.Argument(metavar="USER", autocompletion=completing.users)]
_Members = Annotated[
    list[str] | None,
    typer.Option(help="A user; repeatable. Else nobody.", autocompletion=completing.users),
]


@groups.command("set")
def set_group(name: _Group, member: _Members = None) -> None:
    """Adds a group, or replaces its members."""
    from services.rpc.mgmt_pb2 import Group

    on_mgmt(lambda client: client.change_access(put_group=Group(name=name, members=member or [])))


@groups.command("join")
def join(name: _Group, user: _User) -> None:
    """Makes a user a member; the group is made where there is none."""
    from services.rpc.mgmt_pb2 import Membership

    on_mgmt(lambda client: client.change_access(join_group=Membership(group=name, user=user)))


@groups.command("leave")
def leave(name: _Group, user: _User) -> None:
    """Makes a user no member any more."""
    from services.rpc.mgmt_pb2 import Membership

    on_mgmt(lambda client: client.change_access(leave_group=Membership(group=name, user=user)))


@groups.command("delete")
def delete_group(name: _Group) -> None:
    """Deletes a group; its members stay users."""
    from services.rpc.mgmt_pb2 import GroupKey

    on_mgmt(lambda client: client.change_access(delete_group=GroupKey(name=name)))


@groups.command("list")
def list_groups(as_json: AsLines = False) -> None:
    """Lists groups with their members."""
    from services.cli.columns import GROUPS

    found = on_mgmt(lambda client: client.list_access()).groups
    show_rows(({"name": each.name, "members": list(each.members)} for each in found), GROUPS, as_json=as_json)
