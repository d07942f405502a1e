"""Connections and channels of users and virtual hosts that have limits, here and at other gateways."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from pamqp import commands

from services.common.clients.store import StoreClient
from services.common.errors import NotAllowed
from services.common.limits import CHANNELS, CONNECTIONS, USER, VIRTUAL_HOST, Limited, Limits, Subject, record_of
from services.common.watchers import RECORD_KIND as WATCHER
from services.gateway.connections.elsewhere import USE, Elsewhere
from services.gateway.connections.former import Former
from services.gateway.connections.limited import LimitedConnections
from services.gateway.protocols.amqp_1_0.performatives import Begin, Close, End
from services.rpc.store_pb2 import Record, Records
from tests.support.amqp_1_0_client import Client as AmqpOneClient
from tests.support.broker_house import BrokerHouse

ANNA, HOST = Subject(USER, "anna"), Subject(VIRTUAL_HOST, "/")


class Peer(SimpleNamespace):
    __hash__ = object.__hash__


def peer(user: str = "anna", channels: int = 0) -> Any:
    return Peer(user=user, sessions=dict.fromkeys(range(channels)))


def limited(subject: Subject = ANNA, **values: int) -> LimitedConnections:
    """With limits of one."""
    limits = Limits()
    limits.apply(record_of(Limited(subject, {name.replace("_", "-"): number for name, number in values.items()})))
    return LimitedConnections(limits, Former())


async def _told(*batches: Records) -> AsyncIterator[Records]:
    for each in batches:
        yield each


@pytest.mark.parametrize("subject", [ANNA, HOST])
async def test_connections(subject: Subject) -> None:
    """As many as may be come in; the log says once that there are; others are not counted; who is gone makes room."""
    its, first = limited(subject, max_connections=2), peer()
    its.enter(first, "/")
    its.enter(peer(), "/")
    its.enter(peer("bert"), "other")
    with structlog.testing.capture_logs() as logged:
        for _ in range(3):
            with pytest.raises(NotAllowed, match=r"limit \(2\) is reached"):
                its.enter(peer(), "/")
    assert len(logged) == 1
    for _ in range(2):
        its.leave(first)
    its.enter(peer(), "/")


async def test_channels() -> None:
    """Of all connections of a user."""
    its, one, other = limited(max_channels=3), peer(channels=2), peer()
    for each in (one, other):
        its.enter(each, "/")
    its.begin_session(other)
    other.sessions[1] = None
    with pytest.raises(NotAllowed, match=r"user limit of \(3\)"):
        its.begin_session(one)
    its.begin_session(peer("bert", channels=5))


async def test_nobody_is_told_of_what_is_not_limited() -> None:
    """Only of what is."""
    its = limited(max_connections=5)
    for each in (peer(channels=2), peer(channels=1), peer("bert")):
        its.enter(each, "/")
    assert its.used() == {ANNA: {CONNECTIONS: 2, CHANNELS: 3}}


def _use(name: str, count: int) -> Record:
    value = json.dumps([[*ANNA, {CONNECTIONS: count, CHANNELS: 0}]]).encode()
    return Record(kind=USE, key=name, value=value)


def _watcher(name: str, role: str = "gateway", *, deleted: bool = False) -> Record:
    return Record(kind=WATCHER, key=name, value=json.dumps({"role": role}).encode(), deleted=deleted)


async def test_what_others_have() -> None:
    """Counts while they live, and is what they said last; what this one said itself does not."""
    its = limited(max_connections=10)
    elsewhere = Elsewhere("g1", its)
    there = [_use("g1", 1), _use("g2", 2), _use("g3", 4), _use("dead", 8), *map(_watcher, ("g1", "g2", "g3"))]
    await elsewhere.follow(
        _told(Records(records=there[:3], snapshot=True), Records(records=there[3:], snapshot=True, last=True))
    )
    assert its.elsewhere[ANNA][CONNECTIONS] == 6
    await elsewhere.follow(_told(Records(records=[_use("g2", 3), _watcher("g3", deleted=True)])))
    assert its.elsewhere[ANNA][CONNECTIONS] == 3
    await elsewhere.follow(_told(Records(records=[_watcher("g2")], snapshot=True, last=True)))
    assert its.elsewhere == {}


async def test_limits_that_cannot_be_read() -> None:
    """Are told, and hide none of the others."""
    limits = Limits()
    good = record_of(Limited(ANNA, {CONNECTIONS: 3}))
    bad = Record(kind=USER, key='"bert"', value=b"{")
    with structlog.testing.capture_logs() as logged:
        await limits.follow(_told(Records(records=[bad, good], snapshot=True, last=True)))
    assert (limits.of(ANNA, CONNECTIONS), limits.of(Subject(USER, "bert"), CONNECTIONS)) == (3, None)
    assert len(logged) == 1
    good.deleted = True
    await limits.follow(_told(Records(records=[good])))
    assert not limits.some


async def test_of_all_gateways(tmp_path: Path) -> None:
    """Connections at one gateway count at the others, a moment later, until they are gone."""
    async with BrokerHouse(tmp_path, gateways=2) as house:
        store = StoreClient(house.address_of("store"))
        await store.put_records([record_of(Limited(Subject(USER, "guest"), {CONNECTIONS: 2}))])
        await store.close()
        await house.until_limited(Subject(USER, "guest"), CONNECTIONS, 2)
        first, _ = [await house.connect(gateway) for gateway in range(2)]

        async def comes_in(gateway: int, *, wanted: bool) -> None:
            async with asyncio.timeout(10):
                while True:
                    client = await house.connect(gateway)
                    refused = bool(client.of(commands.Connection.Close))
                    if refused is not wanted:
                        return
                    await (asyncio.sleep(0.1) if refused else client.close())

        for gateway in range(2):
            await comes_in(gateway, wanted=False)
        await first.close()
        await comes_in(1, wanted=True)


async def test_over_amqp_1_0(tmp_path: Path) -> None:
    """Whoever is too many is told amqp:not-allowed: a connection is closed, a session ends."""
    async with BrokerHouse(tmp_path, gateways=1) as house:
        store, client, other = StoreClient(house.address_of("store")), AmqpOneClient(), AmqpOneClient()
        await store.put_records([record_of(Limited(Subject(USER, "guest"), {CHANNELS: 0}))])
        await house.until_limited(Subject(USER, "guest"), CHANNELS, 0)
        assert isinstance(await client.open(house.ports[0], "guest", "guest", "/"), Begin)
        assert (await client.next(End)).error.condition == "amqp:not-allowed"
        await store.put_records([record_of(Limited(Subject(USER, "guest"), {CONNECTIONS: 1}))])
        await house.until_limited(Subject(USER, "guest"), CONNECTIONS, 1)
        refused = await other.open(house.ports[0], "guest", "guest", "/")
        assert (type(refused), refused.error.condition) == (Close, "amqp:not-allowed")
        other.abort()
        await client.close()
        await store.close()
