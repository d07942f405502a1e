"""Plug-ins over Broker-J's REST: what is installed, and nothing that could be changed."""

from __future__ import annotations

from typing import Any

import pytest

from services.common import plugins
from services.common.release import RELEASE
from tests.support.rest import Get


async def _at(get: Get, method: str, path: str, body: object = None) -> tuple[int, Any]:
    status, told, _ = await get(f"/api/latest/{path}", "guest:guest", method, body)
    return status, told


async def test_what_is_installed(get: Get) -> None:
    """Each kind of each type is told, with where it is and whose it is."""
    told = (await _at(get, "GET", "plugin?type=exchange_types&orderBy=name"))[1]
    assert [each["chosenBy"] for each in told] == list(plugins.names("exchange_types"))
    direct = {
        "name": "exchange_types:direct",
        "implementation": "services.common.topology.exchanges.direct:DirectExchange",
    }
    assert direct.items() <= told[0].items()
    assert (told[0]["package"], told[0]["version"]) == ("hopline", RELEASE)
    everything = (await _at(get, "POST", "querybroker/plugin", {"select": "name", "limit": 1}))[1]
    assert everything["total"] == sum(len(plugins.names(group)) for group in plugins.groups())


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
async def test_nothing_is_changed(get: Get, method: str) -> None:
    """Plug-ins are installed with packages, and not over HTTP."""
    assert (await get("/api/latest/plugin/exchange_types:direct", "guest:guest", method, {}))[0] == 405


async def test_where_they_are(get: Get) -> None:
    """They are below the broker, and their types are in the metadata."""
    assert len((await _at(get, "GET", "broker?depth=1"))[1]["plugins"]) > 50
    assert "chosenBy" in (await get("/service/metadata"))[1]["Plugin"]["exchange_types"]["attributes"]
    assert {"name": "exchange_types:direct"}.items() <= (await _at(get, "GET", "plugin/exchange_types:direct"))[
        1
    ].items()
