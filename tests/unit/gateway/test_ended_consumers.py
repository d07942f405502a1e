from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from services.gateway.broker import Broker
from services.gateway.consumer import State
from services.rpc import queue_pb2 as pb


def test_an_answer_that_comes_late() -> None:
    """A consumer that ended while it was being attached stays ended: its next owner is not asked for it."""
    link = object()
    consumer = SimpleNamespace(state=State.ENDED, link=link, answer=None, grant=lambda: None)
    broker = cast("Any", Broker.__new__(Broker))
    broker._consumers = {7: consumer}
    broker._adrift = SimpleNamespace(answered=lambda _handle, *, agreed: agreed)
    broker._attached(link, pb.Attached(consumer=7))
    assert consumer.state is State.ENDED
