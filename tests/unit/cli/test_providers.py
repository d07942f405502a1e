"""`hopline providers`: what is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.common.clients.mgmt import MgmtClient
from services.rpc import mgmt_pb2 as pb
from tests.support.told_objects import hopline

COMPANY = {"type": "ldap", "options": {"url": "ldaps://here", "base": "o=\x1b[31m"}}


@pytest.fixture(autouse=True)
def providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One of the settings, one on record."""
    monkeypatch.setenv("HOPLINE_DATA", str(tmp_path))

    async def listed(_: MgmtClient) -> list[pb.Provider]:
        staff = {"type": "composite", "options": {"providers": ["internal", "company"]}}
        return [
            pb.Provider(name="staff", described=json.dumps(staff).encode(), of_settings=True),
            pb.Provider(name="company", described=json.dumps(COMPANY).encode()),
        ]

    monkeypatch.setattr(MgmtClient, "list_providers", listed)


def test_a_table() -> None:
    """As of everything else: with headings; nothing in an option does anything to a terminal."""
    heading, staff, company = hopline("providers", "list").splitlines()
    assert heading.split() == ["provider", "type", "of", "the", "settings", "options"]
    assert staff.split(maxsplit=3) == ["staff", "composite", "yes", 'providers=["internal", "company"]']
    assert company.split()[:4] == ["company", "ldap", "no", 'url="ldaps://here"']
    assert company.isprintable()


def test_json() -> None:
    """One object on each line."""
    _, company = map(json.loads, hopline("providers", "list", "--json").splitlines())
    assert company == {"name": "company", "of_settings": False, **COMPANY}
