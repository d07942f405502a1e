"""Signing in over a real socket, by a client that speaks SASL's messages as scramp makes them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from pamqp import commands
from structlog.testing import capture_logs

from services.common import scram
from services.common.authentication.attempts import OF_USER_THERE
from services.common.clients.store import StoreClient
from services.mgmt.service import Service as MgmtService
from services.mgmt.users import Users
from services.rpc.store_pb2 import Record
from tests.support.broker_house import BrokerHouse
from tests.support.programs import until
from tests.support.sasl_client import SaslClient

Connection = commands.Connection

_SCRAM = ["SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def users(broker: BrokerHouse) -> AsyncIterator[Users]:
    """As mgmt changes them."""
    store = StoreClient(broker.address_of("store"))
    yield Users(store)
    await store.close()


async def test_what_is_offered(broker: BrokerHouse) -> None:
    """Not all that is installed: SCRAM-SHA-1 is for the operator to allow, and 503 for clients that try it."""
    async with SaslClient(broker.ports[0]) as client:
        assert client.mechanisms == ["PLAIN", "AMQPLAIN", *_SCRAM]
        refused = await client.begin("SCRAM-SHA-1", b"n,,n=guest,r=abc")
        assert isinstance(refused, Connection.Close)
        assert refused.reply_code == 503


@pytest.mark.parametrize("mechanism", _SCRAM)
async def test_scram(broker: BrokerHouse, mechanism: str) -> None:
    """Client and broker prove to each other that they know the password; then the connection opens."""
    async with SaslClient(broker.ports[0]) as client:
        assert isinstance(await client.scram(mechanism, "guest", "guest"), Connection.Tune)
        assert isinstance(await client.open(), Connection.OpenOk)


@pytest.mark.parametrize(("user", "password"), [("guest", "wrong"), ("nobody-here", "guest")])
async def test_a_wrong_password(broker: BrokerHouse, user: str, password: str) -> None:
    """403, in the words of PLAIN, after as many steps for a name without a user."""
    async with SaslClient(broker.ports[0]) as client:
        plain = await client.begin("PLAIN", f"\0{user}\0{password}x".encode())
    async with SaslClient(broker.ports[0]) as client:
        refused = await client.scram("SCRAM-SHA-256", user, password)
    assert isinstance(refused, Connection.Close)
    assert isinstance(plain, Connection.Close)
    assert (refused.reply_code, refused.reply_text) == (plain.reply_code, plain.reply_text)
    assert refused.reply_code == 403


@pytest.mark.parametrize("response", [b"", b"\0guest\0guest", b"p=tls-unique,,n=guest,r=abc", b"\xff" * 2000])
async def test_what_is_no_message(broker: BrokerHouse, response: bytes) -> None:
    """502 as for PLAIN, and one line of the log."""
    with capture_logs() as logged:
        async with SaslClient(broker.ports[0]) as client:
            refused = await client.begin("SCRAM-SHA-256", response)
    assert isinstance(refused, Connection.Close)
    assert refused.reply_code == 502
    assert "SCRAM-SHA-256" in refused.reply_text
    [refusal] = [line for line in logged if line["event"] == "request refused"]
    assert refusal["kind"] == "SyntaxFault"
    # Of this connection; others are still on their way out, and the process has words of its own.
    its = [line["event"] for line in logged if line.get("connection") == refusal["connection"]]
    assert set(its) <= {"request refused", "client went away"}


async def test_a_last_message_that_is_none(broker: BrokerHouse) -> None:
    """502 in the middle of an exchange too."""
    async with SaslClient(broker.ports[0]) as client:
        secure = await client.begin("SCRAM-SHA-256", b"n,,n=guest,r=abc")
        assert isinstance(secure, Connection.Secure)
        refused = await client.go_on(b"c=biws,r=abc,p=YQ==")
        assert isinstance(refused, Connection.Close)
        assert refused.reply_code == 502


async def test_wrong_proofs_are_soon_not_looked_at(broker: BrokerHouse, users: Users, name: str) -> None:
    """After so many a user is refused from there at once, whichever way it signs in; others there are not."""
    await _known(broker, users, name, "secret")
    for _ in range(OF_USER_THERE.burst):
        async with SaslClient(broker.ports[0], "127.0.0.77") as client:
            refused = await client.scram("SCRAM-SHA-256", name, "wrong")
            assert "too many" not in refused.reply_text
    async with SaslClient(broker.ports[0], "127.0.0.77") as client:
        refused = await client.begin("SCRAM-SHA-256", f"n,,n={name},r=abc".encode())
        assert (refused.reply_code, "too many" in refused.reply_text) == (403, True)
    async with SaslClient(broker.ports[0], "127.0.0.77") as client:
        refused = await client.begin("PLAIN", f"\0{name}\0secret".encode())
        assert (refused.reply_code, "too many" in refused.reply_text) == (403, True)
    async with SaslClient(broker.ports[0], "127.0.0.77") as client:
        assert isinstance(await client.scram("SCRAM-SHA-256", "guest", "guest"), Connection.Tune)


async def test_a_user_that_is_deleted_in_the_middle(broker: BrokerHouse, users: Users, name: str) -> None:
    """Between the broker's proof and the client's answer to it: the connection ends, and never opens."""
    await _known(broker, users, name, "secret")
    async with SaslClient(broker.ports[0]) as client:
        assert isinstance(await client.prove("SCRAM-SHA-256", name, "secret"), Connection.Secure)
        await users.delete(name)
        assert await client.ended()


async def _known(broker: BrokerHouse, users: Users, name: str, password: str) -> None:
    """A new user, known to the first gateway."""
    await users.put(name, password, [], loopback_only=False)
    authenticator = broker.gateways[0]._listener.authenticator
    await until(lambda: authenticator.known.keys_of(name, "SCRAM-SHA-256"))


async def test_sha_1_where_the_operator_allows_it(tmp_path: Path) -> None:
    """It is offered, in its place; keys are made for it with the next password."""
    async with (
        BrokerHouse(tmp_path, gateways=1, queues=1, sasl_mechanisms=("SCRAM-SHA-1", "PLAIN")) as house,
        SaslClient(house.ports[0]) as client,
    ):
        assert client.mechanisms == ["SCRAM-SHA-1", "PLAIN"]
        assert isinstance(await client.scram("SCRAM-SHA-1", "guest", "guest"), Connection.Tune)


async def test_anonymous(tmp_path: Path) -> None:
    """Offered where its user is named; then a client needs to say nothing, and is that user."""
    async with BrokerHouse(tmp_path, gateways=1, queues=1, anonymous_user="guest") as house:
        async with SaslClient(house.ports[0]) as client:
            assert client.mechanisms[-1] == "ANONYMOUS"
            assert isinstance(await client.begin("ANONYMOUS", b""), Connection.Tune)
            assert isinstance(await client.open(), Connection.OpenOk)
            [connection] = house.gateways[0]._listener._connections
            assert connection.user == "guest"
        async with SaslClient(house.ports[0]) as client:
            refused = await client.begin("ANONYMOUS", b"\xff")
            assert refused.reply_code == 502


async def test_anonymous_is_not_there_unless_it_is_set(broker: BrokerHouse) -> None:
    """A client that tries it anyway gets 503, as for any mechanism that is not offered."""
    async with SaslClient(broker.ports[0]) as client:
        assert "ANONYMOUS" not in client.mechanisms
        refused = await client.begin("ANONYMOUS", b"")
        assert refused.reply_code == 503


async def test_a_user_from_before(tmp_path: Path) -> None:
    """Without keys SCRAM is refused; after PLAIN, which works while mgmt is away too, mgmt has given it keys."""
    async with BrokerHouse(tmp_path, gateways=1, queues=1) as house:
        await _forget_keys(house, "guest")
        [port] = house.ports
        async with SaslClient(port) as client:
            refused = await client.scram("SCRAM-SHA-256", "guest", "guest")
            assert refused.reply_code == 403
        async with SaslClient(port) as client:
            assert isinstance(await client.begin("PLAIN", b"\0guest\0guest"), Connection.Tune)
        older = house.gateways[0]._older
        await until(lambda: older._not_before)  # mgmt was not there
        older._not_before, older._tried = 0.0, {}
        async with _mgmt(house):
            async with SaslClient(port) as client:
                assert isinstance(await client.begin("PLAIN", b"\0guest\0guest"), Connection.Tune)
            await until(lambda: house.gateways[0]._listener.authenticator.known.keys_of("guest", "SCRAM-SHA-256"))
        for mechanism in _SCRAM:
            async with SaslClient(port) as client:
                assert isinstance(await client.scram(mechanism, "guest", "guest"), Connection.Tune)


async def _forget_keys(house: BrokerHouse, user: str) -> None:
    """As a store has it in which no keys were kept yet."""
    store = StoreClient(house.address_of("store"))
    await store.put_records(deletes=[Record(kind=scram.RECORD_KIND, key=user)])
    await store.close()
    await until(lambda: not house.gateways[0]._listener.authenticator.known.keys_of(user, "SCRAM-SHA-256"))


@asynccontextmanager
async def _mgmt(house: BrokerHouse) -> AsyncIterator[None]:
    settings = house.settings.model_copy(update={"http_port": 0, "http_host": "127.0.0.1", "ledger": False})
    mgmt = MgmtService(settings)
    await mgmt.start()
    yield
    await mgmt.stop()
