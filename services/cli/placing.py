"""`hopline partitions`: which queue process owns which partition, and moving them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.asking import fail, read_settings
from services.cli.talking import on_placement

if TYPE_CHECKING:
    from services.common.clients.placement import Placed, PlacementClient

# ruff: noqa: PLC0415 - what shows something is imported by the command that shows it: it takes time and memory

_MOVE_SECONDS = 30.0

partitions = typer.Typer(
    invoke_without_command=True, help="Partitions of the running stack, and the queue processes that own them."
)


@partitions.callback()
def list_partitions(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on each line.")] = False,
) -> None:
    """Says which queue process owns which partition."""
    if context.invoked_subcommand:
        return
    from services.cli.console import stdout_console
    from services.cli.partitions import show, show_json
    from services.common.errors import BrokerError

    count = read_settings().partitions

    async def ask(client: PlacementClient) -> tuple[list[Placed], Counter[int] | None]:
        placed = await client.all(count)
        try:
            return placed, await client.queues()
        except BrokerError:  # owners are known without the router
            return placed, None

    placed, queues = on_placement(ask)
    (show_json if as_json else show)(placed, queues, stdout_console())


@partitions.command("move")
def move_partitions(
    numbers: Annotated[str, typer.Argument(metavar="PARTITION[,PARTITION…]", help="For example 3, or 1,4, or 0-7.")],
    to: Annotated[
        str,
        typer.Argument(
            help="A queue process: queue-2, a member as listed, its container, the beginning of one, or an address."
        ),
    ],
) -> None:
    """Moves partitions to a queue process, where they stay as long as it lives."""
    found = _partitions(numbers)

    async def move(client: PlacementClient) -> str | None:
        member = await client.move(found, to)
        try:
            async with asyncio.timeout(_MOVE_SECONDS):
                await client.moved(found, member)
        except TimeoutError:
            return None
        return member

    member = on_placement(move, "moving")
    if member is None:
        fail(f"asked for, and not done within {_MOVE_SECONDS:.0f} seconds; see `hopline partitions`")
    typer.echo(f"{len(found)} partition{'s' * (len(found) > 1)} served by {member}")


@partitions.command("unpin")
def unpin_partitions(numbers: Annotated[str, typer.Argument(metavar="PARTITION[,PARTITION…]")]) -> None:
    """Lets partitions that were moved be shared as the others are."""
    found = _partitions(numbers)
    on_placement(lambda client: client.unpin(found))


def _partitions(numbers: str) -> list[int]:
    from services.cli.partitions import parse

    try:
        return parse(numbers, read_settings().partitions)
    except ValueError as error:
        fail(str(error), status=2)
