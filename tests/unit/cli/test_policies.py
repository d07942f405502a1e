"""`hopline policies`: what mgmt is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.rpc import objects_pb2 as pb
from tests.support.told_objects import Told, hopline, told_by


@pytest.fixture
def mgmt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Told:
    monkeypatch.setenv("HOPLINE_DATA", str(tmp_path))
    return told_by(monkeypatch)


def test_a_policy(mgmt: Told) -> None:
    """Is set with what it says, text and numbers, and cleared."""
    command = ("policies", "set", "short", "^jobs", "max-length:=5", "overflow=drop-head")
    assert hopline(*command, "--priority", "1", "--vhost", "shop") == "set\n"
    mgmt.answer = False
    assert "in place" in hopline(*command)
    told = {
        "pattern": "^jobs",
        "definition": {"max-length": 5, "overflow": "drop-head"},
        "priority": 1,
        "apply-to": "all",
    }
    assert mgmt.asked[0] == (pb.POLICY, "shop", "short", told)
    assert hopline("policies", "clear", "short", "other") == "short: cleared\nother: cleared\n"
    assert mgmt.asked[-1] == pb.DeleteRequest(kind=pb.POLICY, virtual_host="/", name="other")


def test_operators(mgmt: Told) -> None:
    """Have theirs apart."""
    hopline("policies", "set", "most", "", "max-length:=5", "--operator", "--apply-to", "queues")
    hopline("policies", "clear", "most", "--operator")
    assert "most" in hopline("policies", "list", "--operator")
    assert [mgmt.asked[0][0], *(each.kind for each in mgmt.asked[1:])] == [pb.OPERATOR_POLICY] * 3


def test_without_what_it_says(mgmt: Told) -> None:
    """What it says is wanted, as name=text or name:=JSON."""
    hopline("policies", "set", "short", "^jobs", status=2)
    assert "max-length" in hopline("policies", "set", "short", "^jobs", "max-length", status=2)
    assert not mgmt.asked
