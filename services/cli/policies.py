"""`hopline policies`: what counts for all queues whose names fit a pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from services.cli import completing
from services.cli.changing import change_each
from services.cli.listing import AnyHost, AsLines, Host, Where, show_list
from services.cli.talking import on_objects
from services.cli.told import table

if TYPE_CHECKING:
    from services.common.clients.objects import ObjectsClient

# ruff: noqa: PLC0415 - as in listing.py

policies = typer.Typer(
    no_args_is_help=True, help="What counts for all queues whose names fit a pattern: RabbitMQ's policies."
)

_Operator = Annotated[
    bool, typer.Option("--operator", help="Operators' policies: limits, of which the lower one counts.")
]
_APPLY_TO = ("all", "queues", "exchanges", "classic_queues", "quorum_queues", "streams")


@policies.command("list")
def list_policies(
    pattern: Annotated[str, typer.Argument(help="Of names, with * and ?.")] = "",
    virtual_host: AnyHost = None,
    where: Where = None,
    operator: _Operator = False,
    as_json: AsLines = False,
) -> None:
    """Lists policies. `hopline queues list --json` says which one each queue has."""
    from services.cli.columns import POLICIES
    from services.rpc import objects_pb2 as pb

    kind = pb.OPERATOR_POLICY if operator else pb.POLICY
    show_list(pb.ListRequest(kind=kind, virtual_host=virtual_host), POLICIES, where, pattern, as_json=as_json)


@policies.command("set")
def set_policy(
    name: Annotated[str, typer.Argument(metavar="POLICY", autocompletion=completing.policies)],
    pattern: Annotated[str, typer.Argument(metavar="REGEX", help="Found anywhere in a queue's name; '' fits all.")],
    says: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=TEXT…", help="Or NAME:=JSON for a number, as max-length:=1000 overflow=drop-head."
        ),
    ],
    virtual_host: Host = "/",
    priority: Annotated[int, typer.Option(metavar="N", help="Of several that fit, the highest counts.")] = 0,
    apply_to: Annotated[
        str,
        typer.Option(metavar="WHAT", help=f"{', '.join(_APPLY_TO)}.", autocompletion=completing.words(*_APPLY_TO)),
    ] = "all",
    operator: _Operator = False,
) -> None:
    """Sets a policy, in place of one of that name: queues heed it at once."""
    from services.rpc import objects_pb2 as pb

    definition = table(says, "policy")
    told = {"pattern": pattern, "definition": definition, "priority": priority, "apply-to": apply_to}
    kind = pb.OPERATOR_POLICY if operator else pb.POLICY
    created = on_objects(lambda client: client.declare(kind, virtual_host, name, told))
    typer.echo("set" if created else "set, in place of what it was")


@policies.command("clear")
def clear_policies(
    name: Annotated[list[str], typer.Argument(metavar="POLICY…", autocompletion=completing.policies)],
    virtual_host: Host = "/",
    operator: _Operator = False,
) -> None:
    """Clears policies: queues are at once as they would be without."""
    from services.rpc import objects_pb2 as pb

    async def clear(client: ObjectsClient, each: str) -> str:
        kind = pb.OPERATOR_POLICY if operator else pb.POLICY
        await client.delete(pb.DeleteRequest(kind=kind, virtual_host=virtual_host, name=each))
        return "cleared"

    change_each("clearing", name, clear)
