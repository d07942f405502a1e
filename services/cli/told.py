"""What is told of a thing on the command line: `name=text`, and `name:=JSON` for what is no text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from services.cli.asking import fail

# ruff: noqa: PLC0415 - as in listing.py

Arguments = Annotated[
    list[str] | None,
    typer.Option(
        "--argument", metavar="NAME=TEXT", help="Or NAME:=JSON for a number, as x-max-length:=1000. Repeatable."
    ),
]


def table(given: Iterable[str] | None, option: str = "--argument") -> dict[str, Any]:
    """As mgmt takes it; exits with a line for what is none."""
    from services.common.dry_run import parse_headers
    from services.common.errors import SyntaxFault
    from services.common.message import arguments

    try:
        found: dict[str, Any] = json.loads(arguments.dump(parse_headers(given or ())) or b"{}")
    except SyntaxFault as error:
        fail(f"{option} {error.text}", status=2)
    return found
