"""What `hopline ports list` shows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from services.cli.console import cell
from services.common.ports.port import Port
from services.common.ports.state import NOT_SAID, Listed, Where
from services.common.printable import printable_json

_PASSWORDS = {None: "", True: " (passwords from anywhere)", False: " (passwords with TLS, or from this machine)"}


def show_ports(ports: Sequence[Listed], console: Console) -> None:
    """As a table, a line for each gateway; one that should listen and does not stands out."""
    table = Table(box=None, pad_edge=False)
    for heading in ("port", "at", "takes", "speaks", "sign in", "most", "gateway", "listens at"):
        table.add_column(heading, overflow="fold")
    for each in ports:
        terms = _terms(each.port, of_settings=each.of_settings)
        for where in each.gateways or (Where(gateway="none", trouble="there is no gateway"),):
            row = (*terms, where.gateway, where.trouble or "; ".join(filter(None, (" ".join(where.at), where.amiss))))
            table.add_row(*map(cell, row), style=_style(where))
    console.print(table)


def _style(where: Where) -> str | None:
    if where.trouble and where.trouble != NOT_SAID:
        return "red"
    return "yellow" if where.trouble or where.amiss else None


def show_ports_json(ports: Sequence[Listed], console: Console) -> None:
    """As JSON lines."""
    for each in ports:
        console.out(printable_json(each.model_dump_json()), highlight=False)


def _terms(port: Port, *, of_settings: bool) -> tuple[str, ...]:
    return (
        f"{port.name} (settings)" if of_settings else port.name,
        port.address,
        " ".join(port.transports) or "all there is",
        " ".join(port.protocols),
        f"{' '.join(port.mechanisms) or 'as settings say'}{_at(port)}{_PASSWORDS[port.unsecured_passwords]}",
        str(port.most or "-"),
    )


def _at(port: Port) -> str:
    return f" at {port.authentication_provider}" if port.authentication_provider else ""
