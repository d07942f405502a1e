from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from services.__main__ import app
from services.cli.ports_shown import show_ports
from services.common import secret
from services.common.clients.ports import PortsClient
from services.common.ports.port import Port, Terms
from services.common.ports.state import Listed, Where


def _shown(*ports: Listed) -> list[str]:
    console = Console(file=StringIO(), width=300)
    show_ports(ports, console)
    return console.file.getvalue().splitlines()[1:]  # type: ignore[attr-defined,no-any-return]


def test_ports_with_their_gateways() -> None:
    """A line for each gateway: where it listens, or why not; what a port takes, and whose it is."""
    of_settings = Listed(
        port=Port(name="amqp", port=5672), of_settings=True, gateways=(Where(gateway="gateway-1", at=("*:5672",)),)
    )
    port = Port(
        name="inner",
        host="::1",
        port=5673,
        transports=("tls",),
        mechanisms=("PLAIN",),
        most=3,
        unsecured_passwords=False,
    )
    wheres = (Where(gateway="gateway-1", at=("[::1]:5673",)), Where(gateway="gateway-2", trouble="taken \x1b[31m"))
    first, second, third = _shown(of_settings, Listed(port=port, of_settings=False, gateways=wheres))
    for part in ("amqp (settings)", "*:5672", "all there is", "as settings say", " - ", "gateway-1"):
        assert part in first
    for part in ("inner", "tls", "PLAIN (passwords with TLS, or from this machine)", " 3 ", "[::1]:5673"):
        assert part in second
    assert third.rstrip().endswith("gateway-2  taken \\x1b[31m")


def test_what_is_amiss() -> None:
    """Is shown behind where it listens."""
    where = Where(gateway="gateway-1", at=("*:5671",), amiss="a.pem: the key is another certificate's")
    [line] = _shown(Listed(port=Port(name="amqps", port=5671), of_settings=True, gateways=(where,)))
    assert "*:5671; a.pem: the key is another certificate's" in line


def test_nobody_there() -> None:
    """A port that no gateway serves is shown all the same."""
    [line] = _shown(Listed(port=Port(name="a", port=1), of_settings=False, gateways=()))
    assert "there is no gateway" in line


def test_a_provider_that_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is named in a warning, since gateways may have it of their settings' file; the port is added all the same."""
    added: list[str] = []

    async def put(_: PortsClient, name: str, _terms: Terms) -> None:
        added.append(name)

    async def has_provider(_: PortsClient, name: str) -> bool:
        return name == "there"

    monkeypatch.setenv("HOPLINE_DATA", str(tmp_path))
    monkeypatch.setattr(PortsClient, "put", put)
    monkeypatch.setattr(PortsClient, "has_provider", has_provider)
    for provider in ("there", "gone"):
        arguments = ["ports", "add", provider, "--address", "*:5673", "--provider", provider]
        result = CliRunner().invoke(app.whole, arguments)
        secret.use("")
        assert result.exit_code == 0
        assert ("there is no authentication provider 'gone'" in result.output) is (provider == "gone")
    assert added == ["there", "gone"]
