"""`hopline ports`: where gateways listen, on which terms, and which gateway listens where."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from services.cli import completing
from services.cli.asking import fail

if TYPE_CHECKING:
    from services.common.clients.ports import PortsClient

# ruff: noqa: PLC0415 - each command imports what it shows with: it takes time and memory

Talk: TypeAlias = "Callable[[Callable[[PortsClient], Coroutine[Any, Any, Any]]], Any]"

_NO_PROVIDER = (
    "warning: there is no authentication provider '{}' on record: no user can sign in there before it is added (hopline"
    " providers add), unless gateways have it of HOPLINE_AUTHENTICATION_PROVIDERS_FILE"
)
_Transports = Annotated[
    list[str] | None,
    typer.Option(
        help="What clients may begin with: plain, tls, websocket. Repeatable; else all there are.",
        autocompletion=completing.words("plain", "tls", "websocket"),
    ),
]
_Protocols = Annotated[
    list[str] | None,
    typer.Option(
        help="What is spoken, told by its first bytes: amqp-0-9, amqp-1-0. Repeatable; else both.",
        autocompletion=completing.kinds("protocols"),
    ),
]
_Mechanisms = Annotated[
    list[str] | None,
    typer.Option(
        help="How clients may sign in, best first. Repeatable; else as HOPLINE_SASL_MECHANISMS.",
        autocompletion=completing.kinds("sasl_mechanisms"),
    ),
]
_Provider = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Who judges who signs in; else as HOPLINE_AUTHENTICATION_PROVIDER.",
        autocompletion=completing.providers,
    ),
]


def commands(talk: Talk) -> typer.Typer:
    """The commands; `talk` makes a call to the running stack, and exits with a line when that fails."""
    ports = typer.Typer(
        no_args_is_help=True, help="Where gateways listen: ports of the settings, and others added at run time."
    )

    @ports.command("remove")
    def remove(
        name: Annotated[str, typer.Argument(metavar="PORT", autocompletion=completing.ports)],
    ) -> None:
        """Has a port closed. Who is connected by it stays connected."""
        talk(lambda client: client.remove(name))

    @ports.command("list")
    def list_ports(
        as_json: Annotated[bool, typer.Option("--json", help="One JSON object on each line.")] = False,
    ) -> None:
        """Lists the ports, with where each gateway listens, or why it does not."""
        from services.cli.console import stdout_console
        from services.cli.ports_shown import show_ports, show_ports_json

        found = talk(lambda client: client.ports())
        (show_ports_json if as_json else show_ports)(found, stdout_console())

    _add_command(ports, talk)
    return ports


def _add_command(ports: typer.Typer, talk: Talk) -> None:
    @ports.command("add")
    def add(
        name: Annotated[str, typer.Argument(help="A port of this name is replaced; its open connections stay.")],
        address: Annotated[str, typer.Option(metavar="HOST:PORT", help="*:PORT for everywhere, [::1]:PORT for IPv6.")],
        transport: _Transports = None,
        protocol: _Protocols = None,
        mechanism: _Mechanisms = None,
        provider: _Provider = "",
        most: Annotated[int, typer.Option(metavar="N", help="Connections at once, in each gateway; 0: no limit.")] = 0,
        unsecured_passwords: Annotated[
            bool | None,
            typer.Option(
                help="Whether PLAIN is taken without TLS from elsewhere; else as HOPLINE_UNSECURED_PASSWORDS."
            ),
        ] = None,
    ) -> None:
        """Makes every gateway listen at an address. `hopline ports list` shows which does, and why one does not."""
        from pydantic import ValidationError

        from services.common.invalid import told
        from services.common.ports.port import Terms, read_address

        lists = {"transports": transport, "protocols": protocol, "mechanisms": mechanism}
        given: dict[str, Any] = {field: tuple(values) for field, values in lists.items() if values}
        if provider:
            given["authentication_provider"] = provider
        try:
            host, number = read_address(address)
            terms = Terms.model_validate(
                {**given, "host": host, "port": number, "most": most, "unsecured_passwords": unsecured_passwords}
            )
            talk(lambda client: client.put(name, terms))
            if provider and not talk(lambda client: client.has_provider(provider)):
                typer.echo(_NO_PROVIDER.format(provider), err=True)
        except ValidationError as error:
            fail(told(error.errors()), status=2)
        except ValueError as error:
            fail(f"--address {error}", status=2)
