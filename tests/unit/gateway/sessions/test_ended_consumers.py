from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from services.gateway.sessions.broker import Broker
from services.gateway.sessions.consumer import Consumer, ConsumerState
from services.rpc import queue_pb2 as pb


def test_an_answer_that_comes_late() -> None:
    """A consumer that ended while it was being attached stays ended: its next owner is not asked for it."""
    link = object()
    consumer = SimpleNamespace(state=ConsumerState.ENDED, link=link, answer=None, grant=lambda: None)
    broker = cast("Any", Broker.__new__(Broker))
    broker._consumers = {7: consumer}
    broker._ownerless = SimpleNamespace(answered=lambda _handle, *, agreed: agreed)
    broker._attached(link, pb.Attached(consumer=7))
    assert consumer.state is ConsumerState.ENDED


async def test_what_comes_while_a_consumer_waits_to_ask_again() -> None:
    """An owner that was lost before it answered is not the consumer's any more: what it still sends is not kept."""
    consumer = SimpleNamespace(state=ConsumerState.ATTACHING, link=object(), settled=True, ended=None)
    consumer.answer = asyncio.get_running_loop().create_future()
    broker = cast("Any", Broker.__new__(Broker))
    broker._lose_owner(consumer)
    assert consumer.answer.result().reason == pb.NOT_OWNER
    assert consumer.link is None


async def test_an_owner_that_refuses_and_is_lost() -> None:
    """The part that attaches the consumer asks the next owner: it is not asked twice, which would make two of one."""
    link = object()
    consumer = SimpleNamespace(state=ConsumerState.ATTACHING, link=link, settled=True, ended=None)
    consumer.answer = asyncio.get_running_loop().create_future()
    broker = cast("Any", Broker.__new__(Broker))
    broker._consumers = {7: consumer}
    broker._ownerless = Mock()
    broker._attached(link, pb.Attached(consumer=7, reason=pb.NOT_OWNER))
    broker._cancelled(link, pb.Cancelled(consumer=7, reason=pb.NOT_OWNER))
    assert not broker._ownerless.add.mock_calls
    assert consumer.answer.result().reason == pb.NOT_OWNER


@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize("way", [Broker.abandon, Broker.remove])
def test_a_queue_that_was_for_it_alone(way: Callable[[Broker, Consumer], None], *, up: bool) -> None:
    """What its connection publishes is for that queue again, whichever way it ends; another's queue is spared yet."""
    connection = SimpleNamespace(spares=frozenset({7, 8}))
    link = Mock(up=up)
    consumer = cast("Any", SimpleNamespace(state=ConsumerState.ATTACHED, link=link, handle=1, queue_id=7))
    consumer.session = SimpleNamespace(connection=connection)
    broker = cast("Any", Broker.__new__(Broker))
    broker._consumers, broker._ownerless = {1: consumer}, Mock()
    way(broker, consumer)
    assert (consumer.state, connection.spares) == (ConsumerState.ENDED, {8})
