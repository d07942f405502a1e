"""Rules of files over Broker-J's REST: `loadFromFile` and `clearRules`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from tests.unit.mgmt.tree.conftest import HOST, Managed

LIMITS = ["brokerconnectionlimitprovider/limits", f"virtualhostconnectionlimitprovider/{HOST}/limits"]
RULES = ["accesscontrolprovider/acl", f"virtualhostaccesscontrolprovider/{HOST}/acl"]
_LET_IN = "ACL ALLOW ALL ALL"


def _url(text: str) -> dict[str, str]:
    return {"path": f"data:,{quote(text)}"}


async def _rules(managed: Managed, path: str) -> object:
    return (await managed("GET", f"{path}/extractRules"))[1]


@pytest.mark.parametrize("path", RULES)
async def test_access(managed: Managed, path: str, tmp_path: Path) -> None:
    """Rules of a file are in place of those that there are."""
    file = tmp_path / "rules"
    file.write_text(f"# mine\n{_LET_IN}\n")
    assert (await managed("PUT", path, {"rules": _LET_IN}))[0] in {200, 201}
    assert await managed("POST", f"{path}/loadFromFile", {"path": str(file)}) == (200, None)
    assert await _rules(managed, path) == f"# mine\n{_LET_IN}\n"
    assert await managed("POST", f"{path}/loadFromFile", _url(_LET_IN)) == (200, None)
    assert await _rules(managed, path) == _LET_IN


@pytest.mark.parametrize("path", LIMITS)
async def test_limits(managed: Managed, path: str) -> None:
    """Rules of a file come to those that there are, as in Broker-J; without any, nothing of it is left."""
    assert (await managed("PUT", path, {"rules": "CLT anna BLOCK", "description": "mine"}))[0] == 201
    assert await managed("POST", f"{path}/loadFromFile", _url("CLT bob BLOCK\n")) == (200, None)
    assert await _rules(managed, path) == "CLT anna BLOCK\nCLT bob BLOCK\n"
    status, told = await managed("POST", f"{path}/loadFromFile", _url("CLT a BLOCK\nCONFIG default_frequency_period=1"))
    assert (status, "CONFIG at line 2" in told["errorMessage"]) == (422, True)
    assert await managed("POST", f"{path}/clearRules", {}) == (200, None)
    assert (await managed("GET", path))[0] == 404
    assert "description" not in (await managed("PUT", path, {"rules": "CLT anna BLOCK"}))[1]


async def test_what_is_wrong(managed: Managed, tmp_path: Path) -> None:
    """Is named with its line, and leaves the rules as they are; what is in a file that has none is told to nobody."""
    path = RULES[0]
    assert (await managed("PUT", path, {"rules": _LET_IN}))[0] == 200
    secret, binary = tmp_path / "secret", tmp_path / "binary"
    secret.write_text("# x\nhunter2")
    binary.write_bytes(b"\xff\xfe")
    for said, why in (
        ({"path": str(secret)}, "parameter 'path': there is no rule at line 2"),
        ({"path": str(binary)}, "parameter 'path': there is no text in UTF-8"),
        ({"path": "rules"}, "parameter 'path': an absolute path is wanted"),
        ({"path": str(tmp_path / "none")}, "parameter 'path': No such file"),
        ({}, "parameter 'path' of loadFromFile: it is mandatory"),
        (_url("ACL NONSENSE"), "parameter 'path': Not enough data for an acl at line 1"),
    ):
        status, told = await managed("POST", f"{path}/loadFromFile", said)
        assert (status, told["errorMessage"].startswith(why)) == (422, True), told
        assert "hunter2" not in str(told)
    assert await _rules(managed, path) == _LET_IN


async def test_who_may(managed: Managed) -> None:
    """Administrators, as for rules that are put."""
    anna = {"password": "secret", "tags": "monitoring"}
    assert (await managed.ask("/api/users/anna", "guest:guest", "PUT", anna))[0] == 201
    for path in (*RULES, *LIMITS):
        assert (await managed("POST", f"{path}/loadFromFile", _url(_LET_IN), "anna:secret"))[0] == 403
    assert (await managed("POST", f"{LIMITS[0]}/clearRules", {}, "anna:secret"))[0] == 403
