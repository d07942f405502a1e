"""Connections of users, as Broker-J's connection limits bound them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from services.common.errors import NotAllowed
from services.common.limit_rules import RECORD_KIND, key_of
from services.gateway.connections.by_rules import ByRules
from services.gateway.connections.former import Former
from services.rpc.store_pb2 import Record, Records


class Peer(SimpleNamespace):
    __hash__ = object.__hash__


def peer(user: str = "anna", port: str = "amqp") -> Any:
    return Peer(user=user, login=SimpleNamespace(port=port))


def _record(text: str, virtual_host: str | None = None, *, deleted: bool = False) -> Record:
    value = json.dumps({"text": text}).encode()
    return Record(kind=RECORD_KIND, key=key_of(virtual_host), value=value, deleted=deleted)


async def _with(*records: Record, clock: Any = lambda: 0.0) -> ByRules:
    rules = ByRules(Former(), clock)
    await _tell(rules, *records, snapshot=True)
    return rules


async def _tell(rules: ByRules, *records: Record, snapshot: bool = False) -> None:
    async def told() -> AsyncIterator[Records]:
        yield Records(records=records, snapshot=snapshot, last=True)

    await rules.follow(told())


async def test_how_many_at_once() -> None:
    """Of each user, at each port; who is gone makes room; who was there before rules were counts too."""
    rules = await _with()
    first = peer()
    rules.enter(first, "/", ())
    await _tell(rules, _record("CLT ALL connection_limit=2"))
    for each in (peer(), peer("bert"), peer(port="amqps")):
        rules.enter(each, "/", ())
    with structlog.testing.capture_logs() as logged:
        for _ in range(3):
            with pytest.raises(NotAllowed, match="user 'anna' has 2 connections at port 'amqp', which is the limit"):
                rules.enter(peer(), "/", ())
    assert len(logged) == 1
    for _ in range(2):
        rules.leave(first)
    rules.enter(peer(), "/", ())


async def test_how_often() -> None:
    """In each period; who was refused does not count, and time makes room."""
    now = [0.0]
    rules = await _with(_record("CLT anna connection_frequency_limit=2/s"), clock=lambda: now[0])
    for each in (peer(), peer()):
        rules.enter(each, "/", ())
        rules.leave(each)
    for now[0] in (0.5, 0.9):
        with pytest.raises(NotAllowed, match="2 times in 1 s"):
            rules.enter(peer(), "/", ())
    now[0] = 1.0
    rules.enter(peer(), "/", ())


async def test_who_comes_once() -> None:
    """Is forgotten after the period, however many they are; who came within it is not."""
    now = [0.0]
    rules = await _with(_record("CLT ALL connection_frequency_limit=1/m"), clock=lambda: now[0])
    for number in range(5000):
        now[0] = number / 10
        each = peer(f"user {number}")
        rules.enter(each, "/", ())
        rules.leave(each)
    assert len(rules._times) < 2000
    with pytest.raises(NotAllowed, match="1 times in 60 s"):
        rules.enter(peer("user 4500"), "/", ())


async def test_whose_rules() -> None:
    """Those of the virtual host count beside the broker's; those of a group for each who is in it; BLOCK for all."""
    rules = await _with(_record("CLT clerks connection_limit=1"), _record("CLT anna BLOCK", "work"))
    rules.enter(peer(), "/", ["clerks"])
    rules.enter(peer("bert"), "work", ["clerks"])
    for who, host, why in ((peer("bert"), "/", "1 connections"), (peer(), "work", "blocked at port 'amqp'")):
        with pytest.raises(NotAllowed, match=why):
            rules.enter(who, host, ["clerks"] if who.user == "bert" else ())
    await _tell(rules, _record("", "work", deleted=True))
    rules.enter(peer(), "work", ())


async def test_rules_that_cannot_be_read() -> None:
    """Are told; others count."""
    with structlog.testing.capture_logs() as logged:
        rules = await _with(_record("CLT"), _record("CLT ALL BLOCK", "work"))
    assert len(logged) == 1
    rules.enter(peer(), "/", ())
    with pytest.raises(NotAllowed):
        rules.enter(peer(), "work", ())
