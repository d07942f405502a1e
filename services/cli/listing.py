"""Lists of what mgmt knows: asked for in pages, each of which is written when it is there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.cli.asking import fail
from services.cli.completing import virtual_hosts
from services.cli.talking import on_objects

if TYPE_CHECKING:
    from services.cli.table import Column
    from services.common.clients.objects import ObjectsClient
    from services.rpc import objects_pb2 as pb

# ruff: noqa: PLC0415 - each command imports what it asks and shows with: it takes time and memory

Host = Annotated[str, typer.Option("--vhost", metavar="NAME", help="Virtual host.", autocompletion=virtual_hosts)]
AnyHost = Annotated[
    str | None,
    typer.Option(
        "--vhost", metavar="NAME", help="Virtual host.", show_default="all of them", autocompletion=virtual_hosts
    ),
]
AsLines = Annotated[bool, typer.Option("--json", help="One JSON object on each line, with all attributes.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, with all attributes.")]
Where = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=PATTERN", help="Only those; as --json names them, with dots inside of others."),
]
Most = Annotated[int, typer.Option("--limit", metavar="N", min=0, help="At most so many; 0: all.")]
Order = Annotated[str, typer.Option("--sort", metavar="COLUMN", help="By what --json has under that name.")]
Descending = Annotated[bool, typer.Option("--descending", help="The largest first.")]


def show_list(
    request: pb.ListRequest,
    columns: Sequence[Column],
    where: Iterable[str] | None,
    pattern: str = "",
    *,
    as_json: bool,
) -> None:
    """Of all that fits, with a name of that pattern; exits with a line where it cannot be asked."""
    request.fits.update(map(_condition, where or ()))
    if pattern:
        request.fits["name"] = pattern
    lines = _json_lines if as_json else _table_lines(columns)

    async def ask(client: ObjectsClient) -> None:
        from services.cli.bar import bar
        from services.cli.console import say

        count = 0
        # At a terminal the rows themselves say that it goes on.
        async with bar("listing", wanted=not sys.stdout.isatty()) as shown:
            async for page in client.list(request):
                say(lines(page.rows))
                count += len(page.rows)
                shown.at(count, page.total)

    on_objects(ask)


def show_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[Column], *, as_json: bool) -> None:
    """Of a list that comes whole."""
    from services.cli.console import say

    say((_json_lines if as_json else _table_lines(columns))(rows))


def show_json(row: Mapping[str, Any]) -> None:
    """One thing, for programs and for people."""
    from services.cli.console import say
    from services.common.printable import printable_json

    say([printable_json(json.dumps(row, ensure_ascii=False, indent=2))])


def _condition(given: str) -> tuple[str, str]:
    column, equals, pattern = given.partition("=")
    if not equals or not column:
        fail(f"--where '{given}': COLUMN=PATTERN is wanted, such as durable=true or arguments.x-queue-type=priority", 2)
    return column, pattern


def _json_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    from services.common.printable import printable_json

    return (printable_json(json.dumps(row, ensure_ascii=False)) for row in rows)


def _table_lines(columns: Sequence[Column]) -> Callable[[Iterable[Mapping[str, Any]]], Iterator[str]]:
    from services.cli.table import Table

    return Table(columns).lines
