"""`hopline permissions`: what users may configure, write and read; and by which routing keys."""

from __future__ import annotations

from typing import Annotated

import typer

from services.cli import completing
from services.cli.asking import fail
from services.cli.of_users import change_access_of
from services.cli.talking import on_mgmt

# ruff: noqa: PLC0415 - as in services/__main__.py

permissions = typer.Typer(
    no_args_is_help=True,
    help="What users may do: RabbitMQ's permissions. A new user may do nothing; the first one everything.",
)
topics = typer.Typer(no_args_is_help=True, help="By which routing keys users may publish and bind; else by all.")
permissions.add_typer(topics, name="topics")

_User = Annotated[str, typer.Argument(metavar="USER", autocompletion=completing.users)]
_Exchange = Annotated[str, typer.Argument(metavar="EXCHANGE", autocompletion=completing.names("EXCHANGE"))]
_Host = Annotated[str, typer.Option(metavar="NAME", help="Virtual host.", autocompletion=completing.virtual_hosts)]
_Everywhere = Annotated[
    bool, typer.Option("--all-vhosts", help="For every virtual host in which the user has no permission of its own.")
]
_NONE = "'' permits nothing, and clear takes away what is set"
_WHERE = "--vhost, or --all-vhosts: not both"


@permissions.command("set")
def set_permission(
    user: _User,
    configure: Annotated[str | None, typer.Option(metavar="REGEX", help="Names to declare and delete.")] = None,
    write: Annotated[str | None, typer.Option(metavar="REGEX", help="Names to publish to, to bind to.")] = None,
    read: Annotated[str | None, typer.Option(metavar="REGEX", help="Names to consume from, purge, bind from.")] = None,
    vhost: _Host = "",
    all_vhosts: _Everywhere = False,
) -> None:
    """Sets a user's permissions, in place of the former ones: '.*' permits every name, '' none.

    An option that is left out permits nothing; at least one is needed.
    """
    from services.rpc.mgmt_pb2 import Permission

    if configure is write is read is None:
        fail(f"at least one of --configure, --write and --read is wanted; {_NONE}", status=2)
    where = _where(vhost, all_vhosts=all_vhosts)
    permission = Permission(
        user=user, configure=configure or "", write=write or "", read=read or "", virtual_host=where
    )
    change_access_of(user, put_permission=permission)


@permissions.command("clear")
def clear_permission(user: _User, vhost: _Host = "", all_vhosts: _Everywhere = False) -> None:
    """Permits a user nothing any more there; who is connected stays connected."""
    from services.rpc.mgmt_pb2 import PermissionKey

    key = PermissionKey(user=user, virtual_host=_where(vhost, all_vhosts=all_vhosts))
    on_mgmt(lambda client: client.change_access(clear_permission=key))


@permissions.command("list")
def list_permissions(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on each line.")] = False,
) -> None:
    """Lists permissions of users."""
    from services.cli.access_shown import show_json, show_permissions
    from services.cli.console import stdout_console

    found = on_mgmt(lambda client: client.list_access()).permissions
    (show_json if as_json else show_permissions)(found, stdout_console())


@topics.command("set")
def set_topic_permission(
    user: _User,
    exchange: _Exchange,
    write: Annotated[str | None, typer.Option(metavar="REGEX", help="Keys to publish with; else none.")] = None,
    read: Annotated[str | None, typer.Option(metavar="REGEX", help="Keys to bind with; else none.")] = None,
    vhost: _Host = "/",
) -> None:
    """Permits a user such keys of an exchange only. {username} and {vhost} stand for what they say."""
    from services.rpc.mgmt_pb2 import TopicPermission

    if write is read is None:
        fail(f"at least one of --write and --read is wanted; {_NONE}", status=2)
    permission = TopicPermission(user=user, exchange=exchange, virtual_host=vhost, write=write or "", read=read or "")
    change_access_of(user, put_topic_permission=permission)


@topics.command("clear")
def clear_topic_permission(user: _User, exchange: _Exchange, vhost: _Host = "/") -> None:
    """Permits a user every key of an exchange again."""
    from services.rpc.mgmt_pb2 import TopicPermissionKey

    key = TopicPermissionKey(user=user, exchange=exchange, virtual_host=vhost)
    on_mgmt(lambda client: client.change_access(clear_topic_permission=key))


@topics.command("list")
def list_topic_permissions(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on each line.")] = False,
) -> None:
    """Lists topic permissions of users."""
    from services.cli.access_shown import show_json, show_topic_permissions
    from services.cli.console import stdout_console

    found = on_mgmt(lambda client: client.list_access()).topic_permissions
    (show_json if as_json else show_topic_permissions)(found, stdout_console())


def _where(vhost: str, *, all_vhosts: bool) -> str | None:
    if vhost and all_vhosts:
        fail(_WHERE, status=2)
    return None if all_vhosts else vhost or "/"
