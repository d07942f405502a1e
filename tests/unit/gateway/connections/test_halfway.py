"""A session of AMQP 1.0 that ends while the queue of one of its links is declared: engine and session together."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from services.gateway import answers
from services.gateway import vocabulary as v
from services.gateway.connections.connection import Connection
from services.gateway.operations import OPERATIONS, Operation, needs
from services.gateway.protocols.amqp_1_0.performatives import Begin, Detach, End
from tests.support.amqp_1_0_playbook import Playbook, framed, receiving
from tests.support.programs import until
from tests.unit.gateway.connections.test_gone import Listener

BEGIN = Begin(None, 0, 10, 10)


@pytest.mark.parametrize("says", [[End()], [End(), BEGIN], [End(), BEGIN, End(), BEGIN], [Detach(9, True)]])
async def test_its_queue_goes(monkeypatch: pytest.MonkeyPatch, says: list[Any]) -> None:
    """Its session hears of it before it is closed, whoever ends it, and though its number is another one's by now."""
    declared, dropped, asked = asyncio.Event(), list[str](), list[v.Request]()

    async def find(_session: object, request: v.FindNode) -> Any:
        return request.candidates[-1]

    async def declare(_session: object, request: v.DeclareQueue) -> answers.QueueDeclared:
        asked.append(request)
        await declared.wait()
        return answers.QueueDeclared("own", 0, 0)

    for kind, does in {v.FindNode: find, v.DeclareQueue: declare}.items():
        monkeypatch.setitem(OPERATIONS, kind, Operation(does, needs.nothing))
    drop = Operation(lambda _client, request: dropped.append(request.name), needs.nothing, of_connection=True)
    monkeypatch.setitem(OPERATIONS, v.DropQueue, drop)
    listener: Any = Listener()
    listener.broker = SimpleNamespace(sessions={}, flush_soon=Connection.flush)
    connection = Connection(listener, Playbook().opened().engine, "1.1")
    connection.connection_made(Mock(get_extra_info=lambda _: None, is_closing=lambda: False))
    connection.data_received(framed(0, BEGIN) + framed(0, receiving("x")))
    await until(lambda: asked)
    connection.data_received(b"".join(framed(0, each) for each in says))
    await asyncio.sleep(0.01)
    assert dropped == []
    declared.set()
    await until(lambda: dropped == ["own"])
    engine: Any = connection.engine
    await until(lambda: not engine._peer.asked)
    assert len(asked) == 1
    assert len(listener.broker.sessions) == (BEGIN in says)
