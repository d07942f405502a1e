"""What the shell completes: names of objects in the running stack."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.__main__ import app
from services.common import secret
from services.common.clients.mgmt import MgmtClient
from services.common.clients.virtual_hosts import VirtualHostsClient
from services.common.errors import Unavailable
from services.rpc import mgmt_pb2 as pb_of_mgmt
from services.rpc import objects_pb2 as pb
from tests.support.told_objects import QUEUE, Told, told_by


@pytest.fixture
def mgmt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Told:
    monkeypatch.setenv("HOPLINE_DATA", str(tmp_path))
    return told_by(monkeypatch)


def completed(words: str) -> list[str]:
    """What bash is told."""
    asked = {"_HOPLINE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    result = CliRunner().invoke(app, env=asked, prog_name="hopline")
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


def test_nobody_answers(mgmt: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing is completed, and nothing is said either: as where the settings have no meaning."""
    mgmt.error = Unavailable("away")
    assert completed("hopline queues show or") == []
    monkeypatch.setenv("HOPLINE_AMQP_PORT", "none")
    assert completed("hopline queues show or") == []
