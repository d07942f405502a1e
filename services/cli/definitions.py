"""`hopline definitions`: what another broker has comes here, and what is here goes elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli import completing
from services.cli.asking import fail
from services.cli.talking import on_mgmt

if TYPE_CHECKING:
    from services.common.clients.mgmt import MgmtClient
    from services.common.definitions import Taken

# ruff: noqa: PLC0415 - as in services/__main__.py

definitions = typer.Typer(no_args_is_help=True, help="Users, permissions, exchanges, queues and bindings as a file.")

_Host = Annotated[
    str | None,
    typer.Option(
        "--vhost",
        metavar="NAME",
        help="Of one virtual host, whose name is not in the file.",
        autocompletion=completing.virtual_hosts,
    ),
]


@definitions.command("import")
def import_definitions(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|URL",
            help="As RabbitMQ exports it; - is standard input. Or RabbitMQ's management itself: "
            "http://user@host:15672 - its password is asked for; one in the URL is seen by everyone who lists the "
            "processes of this machine.",
        ),
    ],
    password_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Holds the password at the URL; - is standard input.")
    ] = None,
    virtual_host: _Host = None,
    as_json: Annotated[bool, typer.Option("--json", help="Show the result as JSON.")] = False,
) -> None:
    """Imports RabbitMQ's definitions, users with their passwords too, and lists what cannot be imported.

    Existing objects stay. Exit status 3: something was left out.
    """
    from services.cli.definitions_shown import lines
    from services.common.printable import printable_json

    data = _fetched(source, password_file) if source.startswith(("http://", "https://")) else _read(source)

    async def take(client: MgmtClient) -> Taken:
        from services.cli.bar import bar

        async with bar("taking definitions") as shown:
            return await client.import_definitions(data, virtual_host, shown.at)

    taken = on_mgmt(take)
    for line in [printable_json(taken.model_dump_json())] if as_json else lines(taken):
        typer.echo(line)
    raise typer.Exit(3 if taken.left_out else 0)


@definitions.command("export")
def export_definitions(
    file: Annotated[str, typer.Argument(help="Is written; - is standard output.")] = "-",
    virtual_host: _Host = None,
) -> None:
    """Writes all definitions as RabbitMQ would: with hashes of passwords, so the file is for its owner only."""
    from services.cli.definitions_shown import indented
    from services.common.printable import printable_json

    text = indented(on_mgmt(lambda client: client.export_definitions(virtual_host), "collecting definitions"))
    if file == "-":
        typer.echo(printable_json(text))
        return
    try:
        _write(Path(file), text)
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}")


def _write(path: Path, text: str) -> None:
    """Whole or not at all, and readable for its owner alone, also where others could read the file before."""
    path = path.resolve()
    if path.exists() and not path.is_file():  # /dev/stdout
        path.write_text(f"{text}\n")
        return
    with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-", delete=False) as new:  # 0600
        try:
            new.write(f"{text}\n")
            new.flush()
            Path(new.name).replace(path)
        except OSError:
            Path(new.name).unlink()
            raise


def _read(source: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        fail(f"{source} cannot be read: {error.strerror}")


def _fetched(url: str, password_file: str | None) -> bytes:
    from services.cli.bar import bar_beside
    from services.cli.definitions_fetched import fetched, user_of
    from services.cli.password import read_password

    try:
        user, given = user_of(url)
        password = given or read_password(None, password_file, twice=False)
        warnings = list[str]()
        with bar_beside("asking for definitions"):
            data = fetched(url, user, password, warnings.append)
    except (OSError, ValueError) as error:
        fail(f"no definitions from there: {error}")
    for line in warnings:
        typer.echo(line, err=True)
    return data
