"""`hopline capture`: messages kept with their bodies, for a time and up to a size; what that costs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from services.cli import completing
from services.cli.asking import fail

if TYPE_CHECKING:
    from services.common.clients.capture import CaptureClient

# ruff: noqa: PLC0415 - each command imports what it shows with: it takes time and memory

Talk: TypeAlias = "Callable[[Callable[[CaptureClient], Coroutine[Any, Any, Any]]], Any]"
Pattern = Annotated[str | None, typer.Option(metavar="PATTERN", help="With * and ?.")]
_Exchange = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="With * and ?.", autocompletion=completing.names("EXCHANGE"))
]
_Host = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="With * and ?.", autocompletion=completing.virtual_hosts)
]


def commands(talk: Talk) -> typer.Typer:
    """The commands; `talk` makes a call to the running stack, and exits with a line when that fails."""
    capture = typer.Typer(
        no_args_is_help=True, help="Messages kept with their bodies: by rules, each for a time and up to a size."
    )

    @capture.command("remove")
    def remove(
        name: Annotated[str, typer.Argument(metavar="RULE", autocompletion=completing.capture_rules)],
    ) -> None:
        """Removes a rule. What it has captured is kept as long as HOPLINE_CAPTURE_DAYS says."""
        talk(lambda client: client.remove(name))

    @capture.command("list")
    def list_rules(
        as_json: Annotated[bool, typer.Option("--json", help="One JSON object on each line.")] = False,
    ) -> None:
        """Lists the rules, with the messages and bytes of each so far."""
        from services.cli.capture_shown import show_rules, show_rules_json
        from services.cli.console import stdout_console

        found = talk(lambda client: client.rules())
        (show_rules_json if as_json else show_rules)(found, stdout_console())

    _add_command(capture, talk)
    return capture


def _add_command(capture: typer.Typer, talk: Talk) -> None:
    @capture.command("add")
    def add(
        name: Annotated[str, typer.Argument(help="A rule of this name is replaced.")],
        queue: Annotated[
            str | None,
            typer.Option(
                metavar="PATTERN",
                help="What is sent from it; else, what is published.",
                autocompletion=completing.names("QUEUE"),
            ),
        ] = None,
        exchange: _Exchange = None,
        key: Pattern = None,
        client: Annotated[
            str | None, typer.Option(metavar="PATTERN", help="The publisher; with --queue, the consumer.")
        ] = None,
        vhost: _Host = None,
        seconds: Annotated[int, typer.Option("--seconds", help="For so long.")] = 600,
        limit: Annotated[int, typer.Option(help="Bytes at most, in all gateways together.")] = 16 << 20,
        body: Annotated[int, typer.Option(help="Bytes of each body that are kept.")] = 4096,
    ) -> None:
        """Keeps messages that match all of the patterns, until its time is over or its bytes are full.

        `hopline trace ID --payload` shows them, `hopline capture list` what it costs.
        """
        from pydantic import ValidationError

        from services.common.capture.rules import Terms
        from services.common.invalid import told

        patterns = {"virtual_host": vhost, "exchange": exchange, "key": key, "queue": queue, "client": client}
        given = {field: pattern for field, pattern in patterns.items() if pattern is not None}
        try:
            terms = Terms(**given, seconds=seconds, limit=limit, body=body)
            talk(lambda client: client.put(name, terms))
        except ValidationError as error:
            fail(told(error.errors()), status=2)
