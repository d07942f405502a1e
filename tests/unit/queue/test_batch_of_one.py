"""A batch of one message is read without columns: to the same message."""

from __future__ import annotations

from typing import Any

import pytest

from services.queue.machine.columns import Columns, Only, only
from services.queue.machine.message import Interned, MemoryAccount, Message
from services.queue.partitions.recovery import Recovery
from services.rpc.queue_pb2 import MessageFacts, PublishBatch, PublishRun
from services.rpc.store_pb2 import EntryColumns

_FACTS = MessageFacts(virtual_host="/", exchange="e", routing_key="k", persistent=True, ttl_ms=7).SerializeToString()


def _batch(**more: Any) -> PublishBatch:
    return PublishBatch(**{"uids": [9], "facts": [_FACTS], "properties": [b"p"], "time_ms": 5, **more})


def _said(message: Message) -> tuple[Any, ...]:
    return message.uid, message.facts, message.properties, message.body, message.received


@pytest.mark.parametrize("more", [{}, {"times_ms": [6]}, {"facts_of": [0], "properties_of": [0]}, {"resent": [0]}])
def test_it_is_the_same(more: dict[str, Any]) -> None:
    """Whatever the batch says of it."""
    found, columns = only(_batch(**more), [b"body"], Interned()), Columns(_batch(**more), [b"body"], Interned())
    assert isinstance(found, Only)
    assert found.uids == columns.uids
    assert _said(found.message(0)) == _said(columns.message(0))
    assert found.message(0) is found.message(0)
    assert found.received(0) == columns.received(0)
    with pytest.raises(IndexError):
        found.message(1)


@pytest.mark.parametrize(
    ("more", "bodies"),
    [
        ({"uids": [9, 10]}, [b"1", b"2"]),
        ({"uids": []}, []),
        ({"facts": []}, [b"1"]),
        ({"facts": [], "runs": [PublishRun(count=1)]}, [b"1"]),
        ({"properties": []}, [b"1"]),
        ({}, []),
    ],
)
def test_any_other(more: dict[str, Any], bodies: list[bytes]) -> None:
    """Is left to the columns, which say what is wrong with it."""
    assert only(_batch(**more), bodies, Interned()) is None


@pytest.mark.parametrize(("positions", "mixed"), [([3], False), ([], False), ([0], True)])
def test_a_batch_of_one_run(positions: list[int], mixed: bool) -> None:
    """Its entries have the places that they have among runs."""
    recovery = Recovery(MemoryAccount(), 2, 0, lambda _: None, lambda *_: None)
    recovery._next[1] = 2
    several = Recovery(MemoryAccount(), 2, 0, lambda _: None, lambda *_: None)
    several._next[1] = 2
    alone = EntryColumns(queue_id=[1], first=[4], count=[2], position=positions)
    beside = EntryColumns(queue_id=[1, 8], first=[4, 0], count=[2, 1], position=[*positions, 0] if positions else [])
    (one,), (same, _) = recovery._alike(alone), several._alike(beside)
    assert (one.queue_id, one.number) == (same.queue_id, same.number)
    assert (one.messages, one.indexes, one.places) == (same.messages, same.indexes, same.places)
    assert recovery._next[1] == several._next[1]
    assert (1 in recovery._mixed) == (1 in several._mixed) == mixed
