"""`hopline acl`: rules of Broker-J's ACL files, and which rule decides."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli import completing
from services.cli.asking import fail
from services.cli.talking import on_mgmt
from services.common.access.tags import KNOWN

if TYPE_CHECKING:
    from services.rpc.mgmt_pb2 import TestAccessReply

# ruff: noqa: PLC0415 - as in services/__main__.py

acl = typer.Typer(no_args_is_help=True, help="Rules in the grammar of Broker-J's ACL files, which come first.")

_Host = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Rules of a virtual host; else the broker's.", autocompletion=completing.virtual_hosts
    ),
]
_Tags = Annotated[
    list[str] | None,
    typer.Option(help="That the user's provider gives it. Repeatable.", autocompletion=completing.words(*KNOWN)),
]
_User = Annotated[str, typer.Argument(metavar="USER", autocompletion=completing.users)]
_Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
_DENIED = 1


@acl.command("load")
def load(
    file: Annotated[str, typer.Argument(help="- is standard input.")],
    vhost: _Host = None,
) -> None:
    """Loads rules, which replace the present ones. They count at once, for open connections too."""
    from services.rpc.mgmt_pb2 import Acl

    on_mgmt(lambda client: client.change_access(put_acl=Acl(text=_read(file), virtual_host=vhost)))


@acl.command("show")
def show(vhost: _Host = None, as_json: _Json = False) -> None:
    """Shows rules as they were loaded."""
    from services.common.printable import printable_json, printable_lines

    found = on_mgmt(lambda client: client.list_access()).acls
    text = next(
        (each.text for each in found if _host_of(each.HasField("virtual_host"), each.virtual_host) == vhost), ""
    )
    if not text:
        fail("no rules are loaded")
    if as_json:
        typer.echo(printable_json(json.dumps({"vhost": vhost, "rules": text})))
    else:
        typer.echo(printable_lines(text.rstrip("\n")))


@acl.command("remove")
def remove(vhost: _Host = None) -> None:
    """Removes all rules; the next access control decides then."""
    from services.rpc.mgmt_pb2 import AclKey

    on_mgmt(lambda client: client.change_access(remove_acl=AclKey(virtual_host=vhost)))


@acl.command("test")
def ask(
    user: _User,
    action: Annotated[str, typer.Argument(help="As in rules: publish, consume, create, bind, access, …")],
    resource: Annotated[str, typer.Argument(help="exchange:NAME, queue:NAME, vhost:NAME, management, broker, …")],
    vhost: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Virtual host of an exchange or a queue.",
            autocompletion=completing.virtual_hosts,
        ),
    ] = "/",
    property: Annotated[  # noqa: A002 - as in rules
        list[str] | None, typer.Option(help="As in rules: routing_key=eu.new, durable=true. Repeatable.")
    ] = None,
    host: Annotated[
        str, typer.Option("--from", metavar="ADDRESS", help="The address that the client comes from.")
    ] = "",
    group: Annotated[
        list[str] | None,
        typer.Option(
            help="That the user's provider says it is in, beside those on record. Repeatable.",
            autocompletion=completing.groups,
        ),
    ] = None,
    tag: _Tags = None,
    as_json: _Json = False,
) -> None:
    """Says whether a user may do something, and which rule decides. Exit status 1: it may not."""
    from services.rpc.mgmt_pb2 import TestAccessRequest

    kind, _, name = resource.partition(":")
    question = TestAccessRequest(
        user=user,
        action=action,
        kind=kind,
        name=name,
        virtual_host=vhost,
        properties=_pairs(property or []),
        host=host,
        groups=group or [],
        tags=tag or [],
    )
    reply: TestAccessReply = on_mgmt(lambda client: client.test_access(question))
    typer.echo(_as_json(reply) if as_json else _in_words(reply))
    if not reply.allowed:
        raise typer.Exit(_DENIED)


def _in_words(reply: TestAccessReply) -> str:
    from services.common.printable import printable

    return f"{'allowed' if reply.allowed else 'denied'}\t{printable(reply.rule)}"


def _as_json(reply: TestAccessReply) -> str:
    from services.common.printable import printable_json

    told = {"allowed": reply.allowed, "rule": reply.rule, "refused": reply.refused}
    return printable_json(json.dumps(told))


def _pairs(written: list[str]) -> dict[str, str]:
    if wrong := [each for each in written if not each.partition("=")[1]]:
        fail(f"--property {wrong[0]}: name=value is wanted", status=2)
    return dict(each.partition("=")[::2] for each in written)


def _host_of(said: bool, name: str) -> str | None:
    return name if said else None


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}")
