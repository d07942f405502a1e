"""`hopline providers`: the authentication providers, which judge sign-ins."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.cli import completing
from services.cli.asking import fail
from services.cli.listing import AsLines, show_rows
from services.cli.talking import on_mgmt

if TYPE_CHECKING:
    from services.common.authentication.provider import Provider
    from services.rpc.mgmt_pb2 import Provider as ListedProvider

# ruff: noqa: PLC0415 - as in services/__main__.py

providers = typer.Typer(no_args_is_help=True, help="Authentication providers, which judge sign-ins.")


@providers.command("add")
def add(
    name: Annotated[
        str, typer.Argument(help="A provider of this name is replaced; connections that it let in are closed.")
    ],
    kind: Annotated[
        str,
        typer.Argument(
            help="ldap, oauth2, file, composite, …: hopline providers kinds.",
            autocompletion=completing.kinds("authentication_providers"),
        ),
    ],
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="OPTION=VALUE",
            help="JSON, or a text as it is; repeatable. Secrets are seen by everyone who lists the processes of this "
            "machine: better in a file.",
        ),
    ] = None,
    options_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Options in TOML, the secret ones too; - is standard input.")
    ] = None,
) -> None:
    """Adds a provider. Ports name it, or HOPLINE_AUTHENTICATION_PROVIDER does; secrets are kept encrypted."""
    options = {**(_read(options_file) if options_file else {}), **dict(map(_pair, option or ()))}
    described = json.dumps({"type": kind, "options": options}).encode()
    on_mgmt(lambda client: client.put_provider(name, described))


@providers.command("remove")
def remove(
    name: Annotated[str, typer.Argument(metavar="PROVIDER", autocompletion=completing.providers)],
) -> None:
    """Removes a provider; who came in by it is disconnected."""
    on_mgmt(lambda client: client.remove_provider(name))


@providers.command("list")
def list_providers(as_json: AsLines = False) -> None:
    """Lists providers with their options; what is secret is masked."""
    from services.cli.columns import PROVIDERS

    show_rows(map(_row, on_mgmt(lambda client: client.list_providers())), PROVIDERS, as_json=as_json)


@providers.command("kinds")
def kinds() -> None:
    """Lists the kinds that are installed, with their options."""
    from services.common import plugins
    from services.common.authentication.described import GROUP

    for name in plugins.names(GROUP):
        typer.echo(name)
        kind: type[Provider] = plugins.load(GROUP, name)
        for option, field in kind.options_type.model_fields.items():
            usually = "" if field.is_required() else f" [{_told(field.get_default(call_default_factory=True))}]"
            typer.echo(f"    {option}{usually}: {field.description}")


def _row(each: ListedProvider) -> dict[str, Any]:
    from services.common.authentication.described import Described

    told = Described.from_json(each.described)
    return {"name": each.name, "type": told.type, "of_settings": each.of_settings, "options": told.options}


def _told(value: object) -> str:
    from pydantic import SecretStr

    return "" if isinstance(value, SecretStr) else json.dumps(value, default=str)


def _pair(text: str) -> tuple[str, Any]:
    option, equals, value = text.partition("=")
    if not equals or not option:
        fail("--set wants OPTION=VALUE", status=2)
    try:
        return option, json.loads(value)
    except ValueError:
        return option, value


def _read(file: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(sys.stdin.read() if file == "-" else Path(file).read_text())
    except (OSError, ValueError) as error:
        fail(f"--options-file {file}: {error}", status=2)
