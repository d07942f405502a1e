"""What the shell completes: names of objects in the running stack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.__main__ import app
from services.common import secret
from services.common.clients.mgmt import MgmtClient
from services.common.clients.ports import PortsClient
from services.common.clients.tracing import TracingClient
from services.common.clients.virtual_hosts import VirtualHostsClient
from services.common.errors import Unavailable
from services.common.ports.port import Port
from services.common.ports.state import Listed
from services.common.telemetry.rules import Rule
from services.rpc import mgmt_pb2 as pb_of_mgmt
from services.rpc import objects_pb2 as pb
from tests.support.told_objects import EXCHANGE, QUEUE, Told, told_by


@pytest.fixture
def mgmt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Told:
    monkeypatch.setenv("HOPLINE_DATA", str(tmp_path))
    return told_by(monkeypatch)


def completed(words: str) -> list[str]:
    """What bash is told."""
    asked = {"_HOPLINE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    result = CliRunner().invoke(app.whole, env=asked, prog_name="hopline")
    secret.use("")
    assert result.stderr == ""
    return result.stdout.split()


def test_names(mgmt: Told) -> None:
    """Of the queues that begin so, in the virtual host that is said; not what a terminal could not have."""
    names = ["shop*", "shop*1", "shopping", "shop*\x1b[31m"]
    mgmt.pages[pb.QUEUE] = [[{**QUEUE, "name": name} for name in names]]
    assert completed("hopline queues show --vhost v shop*") == ["shop*", "shop*1"]
    [asked] = mgmt.asked
    assert (asked.virtual_host, dict(asked.fits)) == ("v", {"name": "shop**"})


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("hopline queues purge orders or", ["orders"]),
        ("hopline get or", ["orders"]),
        ("hopline connections close 3", ["3.2"]),
        ("hopline queues sho", ["show"]),
        ("hopline connec", ["connections"]),
    ],
)
def test_what_is_completed(mgmt: Told, words: str, found: list[str]) -> None:
    """Commands, and names of each kind."""
    assert completed(words) == found


def test_virtual_hosts_and_users(mgmt: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Are completed where one is wanted, as an option's value too."""

    async def hosts(_: VirtualHostsClient) -> list[str]:
        return ["shop", "shed", "/"]

    async def users(_: MgmtClient) -> list[pb_of_mgmt.User]:
        return [pb_of_mgmt.User(name=name) for name in ("anna", "bert")]

    monkeypatch.setattr(VirtualHostsClient, "list", hosts)
    monkeypatch.setattr(MgmtClient, "list_users", users)
    assert completed("hopline vhosts delete sh") == completed("hopline queues list --vhost sh") == ["shed", "shop"]
    assert completed("hopline users delete a") == ["anna"]


def test_what_else_is_on_record(mgmt: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is completed too: groups, providers, rules, and ports but for those of the settings, which nobody removes."""

    async def access(_: MgmtClient) -> pb_of_mgmt.Access:
        return pb_of_mgmt.Access(groups=[pb_of_mgmt.Group(name="clerks")])

    async def providers(_: MgmtClient) -> list[pb_of_mgmt.Provider]:
        return [pb_of_mgmt.Provider(name="company")]

    async def ports(_: PortsClient) -> list[Listed]:
        their = {"amqp": True, "apart": False}
        return [Listed(port=Port(name=name, port=1), of_settings=its, gateways=()) for name, its in their.items()]

    async def rules(_: TracingClient) -> list[Rule]:
        return [Rule(name="orders")]

    monkeypatch.setattr(MgmtClient, "list_access", access)
    monkeypatch.setattr(MgmtClient, "list_providers", providers)
    monkeypatch.setattr(PortsClient, "ports", ports)
    monkeypatch.setattr(TracingClient, "rules", rules)
    assert completed("hopline groups join cl") == ["clerks"]
    assert completed("hopline providers remove c") == completed("hopline ports add p --provider c") == ["company"]
    assert completed("hopline ports remove a") == ["apart"]
    assert completed("hopline tracing rules remove o") == ["orders"]


def test_by_what_else_is_said(mgmt: Told) -> None:
    """A binding may lead to an exchange, and keys of an exchange are no queues' names."""
    mgmt.pages[pb.EXCHANGE] = [[{**EXCHANGE, "name": "ore"}]]
    assert completed("hopline bindings bind x or") == ["orders"]
    assert completed("hopline bindings bind --to-exchange x or") == ["ore"]
    assert completed("hopline publish --key or") == ["orders"]
    assert completed("hopline publish --exchange ore --key or") == []
    assert completed("hopline permissions topics set anna --vhost v or") == ["ore"]
    assert mgmt.asked[-1].virtual_host == "v"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("hopline users tags anna m", ["management", "monitoring"]),
        ("hopline exchanges declare x --type t", ["topic"]),
        ("hopline ports add p --transport w", ["websocket"]),
        ("hopline limits clear max-q", ["max-queues"]),
        ("hopline trace --fate dead", ["dead_lettered"]),
    ],
)
def test_words(mgmt: Told, words: str, found: list[str]) -> None:
    """Of which there are few are completed without asking anybody."""
    assert completed(words) == found
    assert not mgmt.asked


NAMED = {"virtual_host", "vhost", "user", "queue", "exchange", "group", "member", "source", "destination", "provider"}
FILES = {"store", "definitions"}


def _named(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for word, each in getattr(command, "commands", {}).items():
        yield from _named(each, (*path, word))
    if path[:1] and path[0] not in FILES:
        yield from ((f"{' '.join(path)} {each.name}", each) for each in command.params if each.name in NAMED)


def test_every_name_is_completed() -> None:
    """Whatever a command takes that has a name in the stack."""
    named = dict(_named(app.built))
    assert len(named) > len(NAMED)
    assert [what for what, each in named.items() if each._custom_shell_complete is None] == []


def test_nobody_answers(mgmt: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing is completed, and nothing is said either: as where the settings have no meaning."""
    mgmt.error = Unavailable("away")
    assert completed("hopline queues show or") == []
    monkeypatch.setenv("HOPLINE_AMQP_PORT", "none")
    assert completed("hopline queues show or") == []
