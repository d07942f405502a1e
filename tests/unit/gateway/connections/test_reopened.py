"""A channel that its engine has closed: its number is opened again while its session is busy with what came before."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from pamqp import commands, frame

from services.common.errors import NotFound
from services.gateway import vocabulary as v
from services.gateway.connections.connection import Connection
from services.gateway.operations import OPERATIONS, Operation, needs
from services.gateway.outcomes import ACCEPTED
from services.gateway.sessions.session import Session
from tests.support.amqp_playbook import Playbook, written
from tests.support.programs import until
from tests.unit.gateway.connections.test_gone import Listener

BREAKS_AND_OPENS = (
    commands.Queue.Declare(queue="q"),  # keeps the session busy
    commands.Basic.Ack(0, False),  # an unknown tag: the channel is refused
    commands.Channel.Close(200, "", 0, 0),  # so that its engine closes it before its session has ended
    commands.Channel.CloseOk(),
    commands.Channel.Open(),
)


class Client:
    """One whose queues are declared when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.declared = asyncio.Event()
        declares = Operation(lambda *_: self.declared.wait(), needs.nothing)
        monkeypatch.setitem(OPERATIONS, v.DeclareQueue, declares)
        listener: Any = Listener()
        listener.broker = SimpleNamespace(sessions={}, flush_soon=Connection.flush)
        self.connection = Connection(listener, Playbook().opened().engine, "1.1")
        self.transport = Mock(get_extra_info=lambda _: None, is_closing=lambda: False)
        self.connection.connection_made(self.transport)

    def says(self, *values: Any) -> None:
        """All in one read, on channel 1."""
        self.connection.data_received(written(1, *values))

    @property
    def session(self) -> Session:
        """The session of channel 1."""
        return self.connection.sessions[1]

    @property
    def heard(self) -> list[str]:
        """The names of the methods that came, so far."""
        data, names = b"".join(b"".join(each.args[0]) for each in self.transport.writelines.mock_calls), []
        while data:
            size, _, value = frame.unmarshal(data)
            names.append(value.name)
            data = data[size:]
        return names


@pytest.fixture
async def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    """With a channel that has published one message, and expects its confirm."""
    client = Client(monkeypatch)
    client.says(commands.Channel.Open(), commands.Confirm.Select())
    await until(lambda: client.session.inbound.confirmed)
    return client


@pytest.mark.parametrize("then", [(), (commands.Channel.Close(200, "", 0, 0),)], ids=["open", "open and close"])
async def test_a_confirm_is_of_the_channel_that_published(client: Client, then: tuple[Any, ...]) -> None:
    """What the former channel has published is not confirmed on the next one, which opens when the former has ended."""
    former = client.session
    client.says(*BREAKS_AND_OPENS, *then)
    assert former.confirm(0, 1, [0], ACCEPTED)
    assert client.heard == ["Channel.OpenOk", "Confirm.SelectOk", "Channel.Close", "Channel.CloseOk"]
    client.declared.set()
    await until(lambda: client.heard[4:] == ["Channel.OpenOk", *["Channel.CloseOk"] * len(then)])
    assert former.closed


async def test_a_former_publish_that_fails_takes_nothing_with_it(client: Client) -> None:
    """The next channel is not closed for what the former one could not publish."""
    former = client.session
    client.says(*BREAKS_AND_OPENS, commands.Channel.Close(200, "", 0, 0))
    client.connection.fail(v.Publish(1, [], [], []), NotFound("no exchange"))
    assert "Channel.Close" not in client.heard[4:]
    client.declared.set()
    await until(lambda: client.heard[4:] == ["Channel.OpenOk", "Channel.CloseOk"])
    assert former.closed


async def test_both_end_with_their_connection(client: Client) -> None:
    """What the former session holds does not stay with a client that is gone."""
    former = client.session
    client.says(*BREAKS_AND_OPENS)
    client.connection.connection_lost(None)
    await asyncio.sleep(0.01)
    client.declared.set()
    await until(lambda: former.closed)
    assert client.connection.broker.sessions == {}
