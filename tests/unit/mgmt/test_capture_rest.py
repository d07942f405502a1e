"""Capture over HTTP: rules with their bounds and costs, captured messages, and which users may ask."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.capture.cost import RECORD_KIND, Account, Cost
from services.common.capture.rules import Rule
from services.common.clients.mgmt import MgmtClient
from services.common.config import Settings
from services.rpc.store_pb2 import Record
from tests.support.fake_store import FakeStore
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


async def test_what_a_rule_has_cost_goes_with_it(get: Get, store: FakeStore) -> None:
    """Costs that gateways have told are those of their rule: a removed one takes its own along, and no others."""
    for name in ("orders", "others"):
        await get(f"{_RULES}/{name}", "guest:guest", "PUT", {})
    for each in (await get(_RULES))[1]:
        rule = Rule.model_validate(each["rule"])
        for instance in ("gateway-1", "gateway-2"):
            told = Account(instance=instance, rule=rule.name, made_ms=rule.made_ms, cost=Cost(messages=2, bytes=9))
            value = told.model_dump_json().encode()
            store.records[RECORD_KIND, told.key] = Record(kind=RECORD_KIND, key=told.key, value=value)
    assert [each["cost"]["messages"] for each in (await get(_RULES))[1]] == [4, 4]
    await get(f"{_RULES}/orders", "guest:guest", "DELETE")
    left = [key.rpartition(" ")[2] for kind, key in store.records if kind == RECORD_KIND]
    assert left == ["others", "others"]
    assert [each["cost"]["messages"] for each in (await get(_RULES))[1]] == [4]


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
    """No other user may capture messages, or see what is in them: not even those who monitor."""
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
