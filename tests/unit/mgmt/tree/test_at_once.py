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
