"""`hopline limits`: how much users and virtual hosts may have at most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.cli.asking import fail
from services.cli.completing import users, virtual_hosts, words
from services.cli.listing import AsLines, show_rows
from services.cli.of_users import change_access_of
from services.cli.talking import on_mgmt

if TYPE_CHECKING:
    from services.rpc.mgmt_pb2 import Limits

# ruff: noqa: PLC0415 - as in services/__main__.py

limits = typer.Typer(no_args_is_help=True, help="How many connections, channels and queues there may be at most.")

_User = Annotated[str | None, typer.Option(metavar="NAME", help="Of a user.", autocompletion=users)]
_Host = Annotated[str | None, typer.Option(metavar="NAME", help="Of a virtual host.", autocompletion=virtual_hosts)]
_WHOSE = "whose limit: --user NAME or --vhost NAME, one of both"
_NAMES = ("max-connections", "max-channels", "max-queues")
_Limit = Annotated[
    str,
    typer.Argument(metavar="[LIMIT]", help=f"One of {', '.join(_NAMES)}; without: all.", autocompletion=words(*_NAMES)),
]


def _most(of: str) -> Any:  # noqa: ANN401 - as typer has it
    return typer.Option(metavar="N", min=-1, help=f"{of}; -1: any number.")


@limits.command("set")
def set_limits(
    user: _User = None,
    vhost: _Host = None,
    max_connections: Annotated[int | None, _most("Connections of a user, or in a virtual host")] = None,
    max_channels: Annotated[int | None, _most("Channels of a user, on all its connections")] = None,
    max_queues: Annotated[int | None, _most("Queues in a virtual host")] = None,
) -> None:
    """Limits a user or a virtual host: open connections and existing queues stay, and so do limits not named."""
    from services.rpc.mgmt_pb2 import Limits

    numbers = dict(zip(_NAMES, (max_connections, max_channels, max_queues), strict=True))
    values = {name: number for name, number in numbers.items() if number is not None}
    whose = _subject(user, vhost)
    if not values:
        fail(f"at least one of {', '.join(f'--{name}' for name in _NAMES)} is wanted", status=2)
    limited = Limits(values=values, **whose)
    if user:
        change_access_of(user, put_limits=limited)
    else:
        on_mgmt(lambda client: client.change_access(put_limits=limited))


@limits.command("clear")
def clear_limit(
    limit: _Limit = "",
    user: _User = None,
    vhost: _Host = None,
) -> None:
    """Removes limits of a user or a virtual host."""
    from services.rpc.mgmt_pb2 import LimitKey

    key = LimitKey(limit=limit, **_subject(user, vhost))
    on_mgmt(lambda client: client.change_access(clear_limit=key))


@limits.command("list")
def list_limits(as_json: AsLines = False) -> None:
    """Lists limits of users and virtual hosts."""
    from services.cli.columns import LIMITS

    show_rows(map(_row, on_mgmt(lambda client: client.list_access()).limits), LIMITS, as_json=as_json)


def _row(each: Limits) -> dict[str, Any]:
    """As over HTTP."""
    kind = {"user": "user", "virtual_host": "vhost"}[each.WhichOneof("subject") or "user"]
    return {kind: each.user or each.virtual_host, "value": dict(sorted(each.values.items()))}


def _subject(user: str | None, vhost: str | None) -> dict[str, str]:
    named = {"user": user, "virtual_host": vhost}
    found = {kind: name for kind, name in named.items() if name}
    if len(found) != 1:
        fail(_WHOSE, status=2)
    return found
