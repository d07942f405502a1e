"""A gateway before there is any user, and with clients that connect and never sign in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import pytest_asyncio
from pamqp import commands
from structlog.testing import capture_logs

from services.common.authentication import authenticator as authentication
from services.common.authentication.claims import Credentials
from services.common.clients.store import StoreClient
from services.common.errors import AccessRefused
from services.common.limits import Limits
from services.mgmt.users import Users
from services.rpc.store_pb2 import Records
from tests.support.broker_house import BrokerHouse
from tests.support.ports import free_port
from tests.support.programs import until

_HEADER = b"AMQP\x00\x00\x09\x01"


@pytest_asyncio.fixture(loop_scope="session")
async def house(tmp_path: Path) -> AsyncIterator[BrokerHouse]:
    """A broker of its own."""
    async with BrokerHouse(tmp_path, gateways=1, queues=1) as house:
        yield house


async def test_no_client_before_the_first_user(house: BrokerHouse) -> None:
    """A gateway without users says what is missing and does not listen; the first user can log in at once."""
    store = StoreClient(house.address_of("store"))
    users, port = Users(store), free_port()
    await users.delete("guest")
    with patch.object(authentication, "_FIRST_WORD", 0.05), capture_logs() as told:
        starting = asyncio.create_task(house.start_gateway(port))
        await until(lambda: any("no user" in each["event"] for each in told))
        assert [each["log_level"] for each in told if each.get("do", "").startswith("see that mgmt runs")] == [
            "warning"
        ]
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        await users.seed()
        await starting
    await house.connect(1)
    await store.close()


async def test_no_client_before_limits_are_known(house: BrokerHouse) -> None:
    """A gateway does not listen before it knows the limits of users and virtual hosts: it would let in too many."""
    known, port, follow = asyncio.Event(), free_port(), Limits.follow

    async def late(limits: Limits, records: AsyncIterator[Records]) -> None:
        await known.wait()
        await follow(limits, records)

    with patch.object(Limits, "follow", late):
        starting = asyncio.create_task(house.start_gateway(port))
        await asyncio.wait([starting], timeout=0.5)
        assert not starting.done()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        known.set()
        await starting
    await house.connect(1)


@pytest.mark.parametrize("said", [b"", _HEADER])
async def test_probes_are_no_news(house: BrokerHouse, said: bytes) -> None:
    """Connections that close at once, or after the protocol header, are a load balancer's: not each is logged."""
    with capture_logs() as told:
        reader, writer = await asyncio.open_connection("127.0.0.1", house.ports[0])
        if said:
            writer.write(said)
            await reader.readexactly(8)
        writer.close()
        await until(lambda: any(each["event"] == "client went away" for each in told))
    assert [each["log_level"] for each in told] == ["debug"]


async def test_a_client_that_goes_without_a_word_is_news(house: BrokerHouse) -> None:
    """A client that had signed in and goes without connection.close is logged."""
    client = await house.connect()
    with capture_logs() as told:
        client.abort()
        await until(lambda: any(each["event"] == "client went away" for each in told))
    assert [each["log_level"] for each in told if each["event"] == "client went away"] == ["info"]


async def test_a_fault_that_ends_a_connection_is_news(house: BrokerHouse) -> None:
    """A client that sends what is no AMQP, and goes without an answer to our close, is logged with its fault."""
    client = await house.connect()
    with capture_logs() as told:
        client.send(
            1, commands.Basic.Ack(1), commands.Exchange.Declare(exchange="e", exchange_type="direct", passive=True)
        )
        client.send(0, commands.Channel.Open())
        await client.expect(commands.Connection.Close)
        client.abort()
        await until(lambda: any(each["event"] == "connection ended" for each in told))
    [reason] = [each["reason"] for each in told if each["event"] == "connection ended"]
    assert reason.startswith("COMMAND_INVALID"), reason


async def test_a_fault_that_ends_a_channel_is_news(house: BrokerHouse) -> None:
    """A message that cannot be taken closes its channel, and the log says why."""
    client = await house.connect()
    with capture_logs() as told:
        client.publish(b"x", "somewhere", expiration="soon")
        await client.expect(commands.Channel.Close)
        await until(lambda: any(each["event"] == "session ended" for each in told))
    [(channel, reason)] = [(each["session"], each["reason"]) for each in told if each["event"] == "session ended"]
    assert (channel, reason) == (1, "PRECONDITION_FAILED - invalid expiration 'soon'")


class Reset(asyncio.Transport):
    """Of a socket that its peer has reset before it was accepted: uvloop does not know whose it was."""

    aborted = False

    def get_extra_info(self, _name: str, default: Any = None) -> Any:
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is written to it."""

    def abort(self) -> None:
        self.aborted = True


async def test_a_client_that_is_gone_before_it_was_accepted(house: BrokerHouse) -> None:
    """Is not served, though its bytes could be read; nor is it taken for a client on this machine."""
    listener, transport = house.gateways[0]._listener, Reset()
    protocol = listener.entrances["amqp"]._accept()
    protocol.connection_made(transport)
    [connection] = listener._connections
    with pytest.raises(AccessRefused):
        await listener.authenticator.sign_in("internal", Credentials("guest", "guest"), connection.peer_host)
    assert transport.aborted
    protocol.connection_lost(None)
    assert not listener._connections
