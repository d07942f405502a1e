"""EXTERNAL: a client signs in with its certificate, without a password."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pamqp import commands

from services.common.clients.store import StoreClient
from services.gateway.transport.certificates import Certificates, Files
from services.mgmt.users import Users
from tests.support.broker_house import BrokerHouse
from tests.support.certificates import Authority
from tests.support.sasl_client import SaslClient

Connection = commands.Connection


@pytest.fixture
def listener(broker: BrokerHouse, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of the first gateway, which wants certificates of its clients, and offers EXTERNAL, for this test."""
    listener = broker.gateways[0]._listener
    shown = authority.sign("broker", ["localhost"])
    certificates = Certificates(Files((shown,), authorities=authority.path, clients="wanted"))
    monkeypatch.setattr(listener.transports["tls"], "certificates", certificates)
    engines = listener.engines
    monkeypatch.setattr(engines, "mechanisms", (*engines.mechanisms, "EXTERNAL"))
    return listener


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def named_in_full(broker: BrokerHouse) -> str:
    """A user whose name is a distinguished one."""
    name = "CN=full,O=Example"
    store = StoreClient(broker.address_of("store"))
    await Users(store).put(name, "unused", (), loopback_only=False)
    await store.close()
    return name


def sign_in(broker: BrokerHouse, authority: Authority, certificate: Path | None) -> SaslClient:
    return SaslClient(broker.ports[0], tls=authority.client(certificate))


@pytest.mark.parametrize("identity", [b"", b"guest"])
async def test_a_certificate_of_a_user(
    broker: BrokerHouse, listener: Any, authority: Authority, identity: bytes
) -> None:
    """Its common name is the user's, whether the client says it or not."""
    async with sign_in(broker, authority, authority.sign("guest")) as client:
        assert isinstance(await client.begin("EXTERNAL", identity), Connection.Tune)
        assert isinstance(await client.open(), Connection.OpenOk)
        [*_, connection] = listener._connections
        assert connection.user == "guest"


async def test_a_name_without_a_user(broker: BrokerHouse, listener: Any, authority: Authority) -> None:
    """A certificate in another name is refused as a wrong password is."""
    async with sign_in(broker, authority, authority.sign("nobody-here")) as client:
        refused = await client.begin("EXTERNAL", b"")
        assert isinstance(refused, Connection.Close)
        assert refused.reply_code == 403


async def test_a_client_without_a_certificate(broker: BrokerHouse, listener: Any, authority: Authority) -> None:
    """Is not offered what it could not do, over TLS or without, and refused where it tries."""
    without_tls = SaslClient(broker.ports[0])
    for client, offered in (
        (sign_in(broker, authority, authority.sign("guest")), True),
        (sign_in(broker, authority, None), False),
        (without_tls, False),
    ):
        async with client:
            assert ("EXTERNAL" in client.mechanisms) == offered
            if not offered:
                assert (await client.begin("EXTERNAL", b"guest")).reply_code == 503


@pytest.mark.parametrize("identity", [b"root", b"\xff\xfe", b"guest\0"])
async def test_another_identity(broker: BrokerHouse, listener: Any, authority: Authority, identity: bytes) -> None:
    """A client cannot act for another user."""
    async with sign_in(broker, authority, authority.sign("guest")) as client:
        refused = await client.begin("EXTERNAL", identity)
        assert refused.reply_code == 502


async def test_a_distinguished_name(
    broker: BrokerHouse, listener: Any, authority: Authority, named_in_full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is the user's where the operator wants that."""
    settings = listener.settings.model_copy(update={"tls_user": "distinguished-name"})
    monkeypatch.setattr(listener, "settings", settings)
    async with sign_in(broker, authority, authority.sign("full", organization="Example")) as client:
        assert isinstance(await client.begin("EXTERNAL", named_in_full.encode()), Connection.Tune)
