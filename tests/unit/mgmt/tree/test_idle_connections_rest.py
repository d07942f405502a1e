"""closeIdleConnections: who has done nothing is told to go, whoever has stays."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pamqp import commands

from services.common.grpc_channel import connect
from services.mgmt.tree import gateways, recent
from tests.unit.mgmt.tree.conftest import HOST, Managed

_IDLE = 1500  # milliseconds


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "OLDEST", 0.0)


async def close(managed: Managed, **told: Any) -> tuple[int, Any]:
    return await managed("POST", f"virtualhost/{HOST}/closeIdleConnections", told)


async def test_who_is_idle(managed: Managed) -> None:
    """Beats do not count, requests and deliveries do; its client is told why."""
    idle, consumes = await managed.house.connect(), await managed.house.connect()
    await consumes.declare("q")
    await consumes.consume("q", "mine", no_ack=True)
    assert await close(managed, idleTimeMillis=60_000) == (200, 0)
    await asyncio.sleep(_IDLE / 1000)
    idle.writer.write(b"\x08\x00\x00\x00\x00\x00\x00\xce")
    assert (await managed("POST", f"virtualhost/{HOST}/publishMessage", {"message": {"address": "q"}}))[0] == 200
    await consumes.bodies(1)
    assert await close(managed, idleTimeMillis=_IDLE) == (200, 1)
    reason = await idle.expect(commands.Connection.Close)
    assert reason.reply_text.endswith("it was idle")
    idle.send(0, commands.Connection.CloseOk())
    assert (await consumes.declare("q", passive=True)).queue == "q"


async def test_waiting(managed: Managed) -> None:
    """Until they have gone: who does not answer is still there when the time is over, and that is told."""
    idle = await managed.house.connect()
    status, told = await close(managed, idleTimeMillis=0, waitForClose=True, timeoutMillis=100)
    assert (status, "1 of 1 connections" in told["errorMessage"]) == (503, True)
    idle.send(0, commands.Connection.CloseOk())
    for name, value in (("idleTimeMillis", -1), ("timeoutMillis", -1), ("timeoutMillis", 10**400)):
        status, told = await close(managed, **{"idleTimeMillis": 60_000, name: value})
        assert (status, name in told["errorMessage"]) == (422, True)
    await managed.house.connect()
    [last] = (await managed("GET", f"connection/{HOST}"))[1]
    assert last["statistics"]["lastUsedTime"] <= last["statistics"]["lastIoTime"]


def _stands_still(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """To mgmt nothing listens at that gateway's address any more; its clients notice nothing."""
    monkeypatch.setattr(gateways, "connect", lambda at: connect(at + ".away" if at == address else at))


async def _set(managed: Managed, connection: str, value: str) -> None:
    told = {"name": "kept", "value": value}
    assert (await managed("POST", f"connection/{HOST}/{connection}/setContextVariable", told))[0] == 200


async def test_a_gateway_that_does_not_answer(managed: Managed, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named: who is idle there stays, and so does what was said of its connections; those of others go."""
    second = await managed.house.start_gateway()
    idle, unheard = await managed.house.connect(), await managed.house.connect(second)
    gateway = managed.house.gateways[second]._name
    _, names = await managed("GET", f"virtualhost/{HOST}/getConnections")
    (there,), (here,) = (
        [each for each in names if (gateways.gateway_of(each) == gateway) is its] for its in (True, False)
    )
    await _set(managed, there, "yes")
    _stands_still(monkeypatch, managed.house.settings_at(second + 1).address_of("gateway"))
    await _set(managed, here, "no")
    status, told = await close(managed, idleTimeMillis=0)
    assert (status, "1 connections were told to go" in told["errorMessage"]) == (503, True)
    assert f"{gateway} does not answer" in told["errorMessage"]
    await idle.expect(commands.Connection.Close)
    monkeypatch.setattr(gateways, "connect", connect)
    assert (await unheard.declare("q")).queue == "q"
    assert (await managed("GET", f"connection/{HOST}/{there}"))[1]["context"] == {"kept": "yes"}
