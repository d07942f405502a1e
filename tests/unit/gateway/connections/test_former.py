"""Limits of a virtual host that was deleted, and made again by its name while nobody could drop them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from services.common.access.records import FILED_FOR, VIRTUAL_HOST
from services.common.errors import NotAllowed
from services.common.limit_rules import parse
from services.common.limits import CONNECTIONS, Limited, Limits, Subject, record_of
from services.common.limits import VIRTUAL_HOST as LIMITS_OF_HOSTS
from services.gateway.connections.by_rules import ByRules
from services.gateway.connections.former import Former
from services.gateway.connections.limited import LimitedConnections
from services.rpc.store_pb2 import Record, Records


class Peer(SimpleNamespace):
    __hash__ = object.__hash__


def _peer() -> Any:
    return Peer(user="anna", sessions={}, login=SimpleNamespace(port="amqp"))


def _of(kind: str, number: int, *, deleted: bool = False) -> Record:
    return Record(kind=kind, key="work", value=json.dumps({"id": number}).encode(), deleted=deleted)


async def _tell(former: Former, *records: Record, snapshot: bool = False) -> None:
    async def told() -> AsyncIterator[Records]:
        yield Records(records=records, snapshot=snapshot, last=True)

    await former.follow(told())


def _limited(former: Former) -> Callable[[], None]:
    limits = Limits()
    limits.apply(record_of(Limited(Subject(LIMITS_OF_HOSTS, "work"), {CONNECTIONS: 0})))
    connections = LimitedConnections(limits, former)
    return lambda: connections.enter(_peer(), "work")


def _ruled(former: Former) -> Callable[[], None]:
    rules = ByRules(former)
    rules._rules = {"work": parse("CLT ALL BLOCK")}
    return lambda: rules.enter(_peer(), "work", ())


@pytest.mark.parametrize("made", [_limited, _ruled])
async def test_of_a_former_one(made: Callable[[Former], Callable[[], None]]) -> None:
    """Bound nobody in the next one, until mgmt says that what is on record is its own."""
    former = Former()
    enter = made(former)
    for told in (_of(VIRTUAL_HOST, 1), _of(FILED_FOR, 1)):
        await _tell(former, told)
        with pytest.raises(NotAllowed):
            enter()
    await _tell(former, _of(VIRTUAL_HOST, 1, deleted=True))
    await _tell(former, _of(VIRTUAL_HOST, 2))
    enter()
    await _tell(former, _of(FILED_FOR, 2))
    with pytest.raises(NotAllowed):
        enter()


async def test_the_broker_s_rules() -> None:
    """Are nobody's: they bind in every virtual host."""
    former = Former()
    rules = ByRules(former)
    rules._rules = {None: parse("CLT ALL BLOCK")}
    await _tell(former, _of(VIRTUAL_HOST, 2), _of(FILED_FOR, 1), snapshot=True)
    with pytest.raises(NotAllowed):
        rules.enter(_peer(), "work", ())


async def test_another_snapshot() -> None:
    """Takes the place of the one before."""
    former = Former()
    await _tell(former, _of(VIRTUAL_HOST, 2), _of(FILED_FOR, 1), snapshot=True)
    assert former.has_limits("work")
    assert not former.has_limits("play")
    await _tell(former, _of(VIRTUAL_HOST, 2), snapshot=True)
    assert not former.has_limits("work")
