"""Changes that come at once: each is answered with success, and each is there afterwards."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.rest import Get


async def _at(get: Get, method: str, path: str, body: object = None) -> tuple[int, Any]:
    status, told, _ = await get(f"/api/latest/{path}", "guest:guest", method, body)
    return status, told


async def test_members(get: Get) -> None:
    """Of one group, that are made and deleted."""
    assert (await _at(get, "PUT", "group/internal/g", {}))[0] == 201
    answers = await asyncio.gather(*(_at(get, "PUT", f"groupmember/internal/g/m{n}", {}) for n in range(8)))
    assert [status for status, _ in answers] == [201] * 8
    names = [each["name"] for each in (await _at(get, "GET", "groupmember/internal/g"))[1]]
    assert sorted(names) == [f"m{n}" for n in range(8)]
    answers = await asyncio.gather(*(_at(get, "DELETE", f"groupmember/internal/g/m{n}") for n in range(7)))
    assert [status for status, _ in answers] == [200] * 7
    assert [each["name"] for each in (await _at(get, "GET", "groupmember/internal/g"))[1]] == ["m7"]


async def test_variables(get: Get) -> None:
    """Of one object: each is kept, and no caller waits until another's write is gone again."""
    assert (await _at(get, "GET", "broker"))[0] == 200  # guest's password is known then: no thread is wanted for it
    said = [{"name": f"v{n}", "value": "x"} for n in range(6)]
    answers = await asyncio.gather(*(_at(get, "POST", "broker/setContextVariable", each) for each in said))
    assert answers == [(200, None)] * 6
    assert (await _at(get, "GET", "broker?actuals=true"))[1]["context"] == {f"v{n}": "x" for n in range(6)}
    assert (await _at(get, "POST", "broker/setContextVariable", {"name": "v0", "value": "y"})) == (200, "x")
    gone = [_at(get, "POST", "broker/removeContextVariable", {"name": f"v{n}"}) for n in range(5)]
    assert sorted(await asyncio.gather(*gone)) == [(200, "x")] * 4 + [(200, "y")]
    assert (await _at(get, "GET", "broker?actuals=true"))[1]["context"] == {"v5": "x"}


async def test_a_port(get: Get) -> None:
    """Two who change another thing of it both have it."""
    assert (await _at(get, "PUT", "port/p", {"port": 45997}))[0] == 201
    changes: list[dict[str, Any]] = [{"maxOpenConnections": 7}, {"mechanisms": ["PLAIN"]}, {"port": 45996}]
    answers = await asyncio.gather(*(_at(get, "POST", "port/p", each) for each in changes))
    assert [status for status, _ in answers] == [200] * 3
    told = (await _at(get, "GET", "port/p"))[1]
    assert (told["maxOpenConnections"], told["mechanisms"], told["port"]) == (7, ["PLAIN"], 45996)
