"""Broker-J's connection limits over its REST: what clients of a gateway meet."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pamqp import commands

from tests.support.programs import until
from tests.unit.mgmt.tree.conftest import HOST, Managed

BROKER, OF_HOST = "brokerconnectionlimitprovider/limits", f"virtualhostconnectionlimitprovider/{HOST}/limits"


@pytest.mark.parametrize("path", [BROKER, OF_HOST])
async def test_a_limit(managed: Managed, path: str) -> None:
    """Is created, kept to, told, changed and deleted; what is no rule is refused with its line."""
    rules = "CLT guest connection_limit=1"
    assert (await _changed(managed, "PUT", path, rules))[0] == 201
    assert (await managed("GET", path))[1]["rules"] == await _extracted(managed, path) == rules
    await managed.house.connect()
    [refused] = (await managed.house.connect()).of(commands.Connection.Close)
    assert refused.reply_code == 530
    assert "user 'guest' has 1 connections at port 'amqp'" in refused.reply_text
    status, told = await managed("POST", path, {"rules": "CLT guest\nCLT guest many=1"})
    assert (status, "many at line 2" in told["errorMessage"]) == (422, True)
    assert (await _changed(managed, "POST", path, "CLT guest connection_limit=2"))[0] == 200
    assert not (await managed.house.connect()).of(commands.Connection.Close)
    assert (await _changed(managed, "DELETE", path))[0] == 200
    assert (await managed("GET", path))[0] == 404
    assert not (await managed.house.connect()).of(commands.Connection.Close)


async def _changed(managed: Managed, method: str, path: str, rules: str = "") -> tuple[int, Any]:
    """What is said of it, when the gateway goes by it."""
    heard = managed.house.gateways[0]._listener.by_rules
    before = dict(heard._rules)
    answer = await managed(method, path, {"rules": rules} if rules else None)
    await until(lambda: heard._rules != before)
    return answer


async def _extracted(managed: Managed, path: str) -> str:
    return str((await managed("GET", f"{path}/extractRules"))[1])


async def test_it_has_one_name(managed: Managed) -> None:
    """There is one set of rules, and it has some."""
    wrong = [({"rules": "CLT a BLOCK"}, "others", "are called 'limits'"), ({}, "limits", "rules")]
    for said, name, why in wrong:
        status, told = await managed("PUT", f"brokerconnectionlimitprovider/{name}", said)
        assert (status, why in told["errorMessage"]) == (422, True), told


async def test_it_goes_with_its_virtual_host(managed: Managed) -> None:
    """The next one of that name has none."""
    path = "virtualhostconnectionlimitprovider/work/work/limits"
    assert (await managed("PUT", "virtualhost/work/work", {}))[0] == 201
    assert (await managed("PUT", path, {"rules": "CLT ALL BLOCK"}))[0] == 201
    assert (await managed("DELETE", "virtualhost/work/work"))[0] == 200
    assert (await managed("PUT", "virtualhost/work/work", {}))[0] == 201
    async with asyncio.timeout(5):
        while (await managed("GET", path))[0] != 404:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(("path", "other"), [(BROKER, OF_HOST), (OF_HOST, BROKER)])
async def test_counters_are_reset(managed: Managed, path: str, other: str) -> None:
    """Who has connected as often as it may, may again: by those rules, and by no others."""
    for each in (path, other):
        assert (await _changed(managed, "PUT", each, "CLT guest connection_frequency_limit=1/h"))[0] == 201
    assert not (await managed.house.connect()).of(commands.Connection.Close)
    for each, may in ((path, False), (other, True)):
        assert (await managed.house.connect()).of(commands.Connection.Close)
        assert await managed("POST", f"{each}/resetCounters", {}) == (200, None)
        assert not may or not (await managed.house.connect()).of(commands.Connection.Close)
