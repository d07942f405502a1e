"""Capture over HTTP: rules with their bounds and costs, what was captured, and who may ask."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.clients.mgmt import MgmtClient
from services.common.config import Settings
from tests.support.ledger_files import LedgerFiles, uid
from tests.support.rest import Get

_RULES = "/api/capture/rules"


@pytest.fixture
def ledger(settings: Settings) -> LedgerFiles:
    """One message."""
    ledger = LedgerFiles(settings.data / "ledger")
    ledger.stage("received", uid(1))
    ledger.file()
    return ledger


async def _names(get: Get) -> list[str]:
    return [each["rule"]["name"] for each in (await get(_RULES))[1]]


async def test_rules_are_made_and_removed(get: Get) -> None:
    """PUT makes a rule or replaces it, GET lists them with their costs, DELETE removes one; there are none at first."""
    assert await _names(get) == []
    for seconds in (30, 60):
        status, body, _ = await get(f"{_RULES}/orders", "guest:guest", "PUT", {"queue": "work", "seconds": seconds})
        assert (status, body["queue"], body["seconds"]) == (200, "work", seconds)
    [told] = (await get(_RULES))[1]
    assert (told["rule"]["seconds"], told["ended"]) == (60, False)
    assert told["cost"] == {"messages": 0, "bytes": 0, "left_out": 0}
    assert (await get(f"{_RULES}/orders", "guest:guest", "DELETE"))[0] == 204
    assert (await get(f"{_RULES}/orders", "guest:guest", "DELETE"))[0] == 404
    assert await _names(get) == []


@pytest.mark.parametrize("terms", [{"seconds": 10**9}, {"limit": 1 << 40}, {"body": 1 << 30}, {"quee": "work"}, []])
async def test_bad_rules(get: Get, terms: Any) -> None:
    """A rule without bounds, or with a word that means nothing, is refused, and nothing is captured."""
    status, body, _ = await get(f"{_RULES}/orders", "guest:guest", "PUT", terms)
    assert (status, body["error"]) == (400, "SyntaxFault")
    assert await _names(get) == []


@pytest.mark.parametrize(
    ("path", "method"),
    [
        (_RULES, "GET"),
        (f"{_RULES}/orders", "PUT"),
        (f"{_RULES}/orders", "DELETE"),
        (f"/api/capture/messages/{uid(1)}", "GET"),
    ],
)
async def test_administrators_only(get: Get, client: MgmtClient, ledger: LedgerFiles, path: str, method: str) -> None:
    """Nobody else may have messages kept, nor see what is in them: not those who monitor either."""
    for name, tags in (("mona", ["monitoring"]), ("dora", [])):
        await client.put_user(name, "secret", tags)
        status, body, _ = await get(path, f"{name}:secret", method, {} if method == "PUT" else None)
        assert (status, body["error"]) == (403, "AccessRefused")
    assert (await get(path, None, method, {} if method == "PUT" else None))[0] == 401
    assert await _names(get) == []


async def test_messages(get: Get, ledger: LedgerFiles) -> None:
    """An administrator gets a message's way with what was captured of it; what is not on record is not found."""
    status, body, _ = await get(f"/api/capture/messages/{uid(1)}")
    assert (status, body["journeys"][0]["messages"][0]["payloads"]) == (200, [])
    assert (await get("/api/capture/messages/none"))[0] == 404
