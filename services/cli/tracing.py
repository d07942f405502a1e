"""`hopline tracing`: what becomes of spans, and the rules that say which messages get them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from services.cli import completing

if TYPE_CHECKING:
    from services.common.clients.tracing import TracingClient

# ruff: noqa: PLC0415 - each command imports what it shows with: it takes time and memory

Talk: TypeAlias = "Callable[[Callable[[TracingClient], Coroutine[Any, Any, Any]]], Any]"
Pattern = Annotated[str | None, typer.Option(metavar="PATTERN", help="With * and ?.")]
_Queue = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="With * and ?.", autocompletion=completing.names("QUEUE"))
]
_Exchange = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="With * and ?.", autocompletion=completing.names("EXCHANGE"))
]
_Host = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="With * and ?.", autocompletion=completing.virtual_hosts)
]


def commands(talk: Talk) -> typer.Typer:
    """The commands; `talk` makes a call to the running stack, and exits with a line when that fails."""
    tracing = typer.Typer(invoke_without_command=True, help="Spans of the running stack.")

    @tracing.callback()
    def processes(
        context: typer.Context,
        as_json: Annotated[bool, typer.Option("--json", help="One JSON object on each line.")] = False,
    ) -> None:
        """Says how many spans each process has made, exported and dropped."""
        from services.cli.console import stdout_console
        from services.cli.tracing_shown import show_processes, show_processes_json

        if not context.invoked_subcommand:
            found = talk(lambda client: client.processes())
            (show_processes_json if as_json else show_processes)(found, stdout_console())

    tracing.add_typer(_rules(talk), name="rules")
    return tracing


def _rules(talk: Talk) -> typer.Typer:
    rules = typer.Typer(no_args_is_help=True, help="Which messages get spans besides those traced by publishers.")

    @rules.command("remove")
    def remove(
        name: Annotated[str, typer.Argument(metavar="RULE", autocompletion=completing.tracing_rules)],
    ) -> None:
        """Removes a rule."""
        talk(lambda client: client.remove(name))

    @rules.command("list")
    def list_rules(
        as_json: Annotated[bool, typer.Option("--json", help="One JSON object on each line.")] = False,
    ) -> None:
        """Lists the rules."""
        from services.cli.console import stdout_console
        from services.cli.tracing_shown import show_rules, show_rules_json

        found = talk(lambda client: client.rules())
        (show_rules_json if as_json else show_rules)(found, stdout_console())

    _add_command(rules, talk)
    return rules


def _add_command(rules: typer.Typer, talk: Talk) -> None:
    @rules.command("add")
    def add(
        name: Annotated[str, typer.Argument(help="A rule of this name is replaced.")],
        queue: _Queue = None,
        exchange: _Exchange = None,
        client: Annotated[
            str | None, typer.Option(metavar="PATTERN", help="Its user, connection, or application's name.")
        ] = None,
        message_id: Pattern = None,
        header: Annotated[str | None, typer.Option(metavar="NAME[=PATTERN]", help="A header that is there.")] = None,
        vhost: _Host = None,
        ratio: Annotated[float, typer.Option(min=0, max=1, help="Share that is traced; 0: never any.")] = 1.0,
    ) -> None:
        """Traces messages that match all of the patterns; with ratio 0, it traces none of them."""
        from services.common.telemetry.rules import Rule

        header_name, equals, value = (header or "").partition("=")
        rule = Rule(
            name=name,
            ratio=ratio,
            virtual_host=vhost,
            exchange=exchange,
            queue=queue,
            client=client,
            message_id=message_id,
            header=header_name or None,
            header_value=value if equals else None,
        )
        talk(lambda client: client.put(rule))
