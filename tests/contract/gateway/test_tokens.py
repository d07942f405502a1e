"""Tokens in place of passwords: a real issuer, clients over real sockets."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pamqp import commands, frame
from structlog.testing import capture_logs

from tests.support.broker_house import BrokerHouse
from tests.support.issuer import Issuer, running_issuer
from tests.support.programs import until
from tests.support.raw_amqp import method, short
from tests.support.sasl_client import SaslClient

Connection = commands.Connection


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with running_issuer() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BrokerHouse]:
    """A broker whose clients sign in with the issuer's tokens."""
    folder = tmp_path_factory.mktemp("tokens")
    file = folder / "providers.toml"
    file.write_text(f'[cloud]\ntype = "oauth2"\nissuer = "{issuer.url}"\naudience = ["hopline"]\nleeway = 0\n')
    settings: dict[str, Any] = {"authentication_providers_file": file, "authentication_provider": "cloud"}
    settings["access_control"] = ("allow_all",)
    async with BrokerHouse(folder, gateways=1, queues=1, **settings) as running:
        yield running


def xoauth2(token: str, user: str = "") -> bytes:
    return f"user={user}\1auth=Bearer {token}\1\1".encode()


async def opened(client: SaslClient, token: str) -> None:
    assert isinstance(await client.begin("XOAUTH2", xoauth2(token)), Connection.Tune)
    assert isinstance(await client.open(), Connection.OpenOk)


async def update(client: SaslClient, secret: str) -> Any:
    """connection.update-secret, and what the broker says to it."""
    said = secret.encode()
    client._writer.write(method(10, 70, len(said).to_bytes(4, "big") + said, short("it is time"), channel=0))
    return await client.answer()


async def test_tokens_are_offered_for(house: BrokerHouse, issuer: Issuer) -> None:
    """XOAUTH2, and passwords, which are tokens too; SCRAM is not, since there are no passwords."""
    async with SaslClient(house.ports[0]) as client:
        assert client.mechanisms == ["PLAIN", "AMQPLAIN", "XOAUTH2"]
        await opened(client, issuer.token())
    async with SaslClient(house.ports[0]) as client:
        said = f"\0whoever\0{issuer.token(sub='bob')}".encode()
        assert isinstance(await client.begin("PLAIN", said), Connection.Tune)
        await until(lambda: "bob" in {each.user for each in house.gateways[0]._listener._connections})


@pytest.mark.parametrize(
    "response", [b"", b"user=a\1", b"auth=Bearer x", b"user=a\1auth=Basic x\1\1", b"\xff\1\1", b"\1\1"]
)
async def test_what_is_no_response(house: BrokerHouse, response: bytes) -> None:
    """502, as for other mechanisms."""
    async with SaslClient(house.ports[0]) as client:
        refused = await client.begin("XOAUTH2", response)
        assert refused.reply_code == 502


async def test_a_bad_token(house: BrokerHouse, issuer: Issuer) -> None:
    """403, in the words of passwords; users on record do not come in by that provider."""
    for said in (xoauth2(issuer.token(aud="another")), xoauth2("x.y.z")):
        async with SaslClient(house.ports[0]) as client:
            refused = await client.begin("XOAUTH2", said)
            assert (refused.reply_code, "login was refused" in refused.reply_text) == (403, True)
    async with SaslClient(house.ports[0]) as client:
        refused = await client.begin("PLAIN", b"\0guest\0guest")
        assert refused.reply_code == 403


async def test_a_connection_ends_with_its_token(house: BrokerHouse, issuer: Issuer) -> None:
    """320, at that moment."""
    async with SaslClient(house.ports[0]) as client:
        expires = int(time.time()) + 4
        await opened(client, issuer.token(exp=expires))
        closed = await client.answer()
        assert (closed.reply_code, "has expired" in closed.reply_text) == (320, True)
        assert time.time() > expires - 0.1


async def test_a_newer_token_keeps_the_connection(house: BrokerHouse, issuer: Issuer) -> None:
    """Until that one expires."""
    async with SaslClient(house.ports[0]) as client:
        first = int(time.time()) + 4
        await opened(client, issuer.token(exp=first))
        assert isinstance(await update(client, issuer.token(exp=first + 2)), Connection.UpdateSecretOk)
        closed = await client.answer()
        assert closed.reply_code == 320
        assert time.time() > first + 1.9


@pytest.mark.parametrize("claims", [{"aud": "another"}, {"sub": "bob"}, {"exp": 1}])
async def test_a_newer_token_that_is_refused(house: BrokerHouse, issuer: Issuer, claims: dict[str, Any]) -> None:
    """530, as RabbitMQ: it is invalid, or another user's."""
    async with SaslClient(house.ports[0]) as client:
        await opened(client, issuer.token())
        closed = await update(client, issuer.token(**claims))
        assert (closed.reply_code, closed.reply_text) == (530, "NOT_ALLOWED - the new secret was refused")
        client._writer.write(frame.marshal(Connection.CloseOk(), 0))
        assert await client.ended()


async def test_timers_end_with_connections(house: BrokerHouse, issuer: Issuer) -> None:
    """Of those that are gone none is left, however long their tokens would have been good."""
    listener = house.gateways[0]._listener
    async with SaslClient(house.ports[0]) as client:
        await opened(client, issuer.token(sub="carol"))
        [connection] = [each for each in listener._connections if each.user == "carol"]
        timer = connection.login._expiry._timer
        assert not timer.cancelled()
    await until(lambda: connection not in listener._connections)
    assert timer.cancelled()


async def test_large_tokens(house: BrokerHouse, issuer: Issuer) -> None:
    """Of a user in many groups: as much as a frame holds before tune (section 4.2.3: 4096 bytes)."""
    groups = [f"group-{number}" for number in range(150)]
    async with SaslClient(house.ports[0]) as client:
        await opened(client, issuer.token(groups=groups, sub="joiner"))
        [connection] = [each for each in house.gateways[0]._listener._connections if each.user == "joiner"]
        assert connection.login.principal.groups == set(groups)


async def test_an_issuer_that_is_away(issuer: Issuer, tmp_path: Path) -> None:
    """541: no client can sign in by it, clients of other providers can, and the log has one line for many clients."""
    file = tmp_path / "providers.toml"
    file.write_text('[away]\ntype = "oauth2"\nissuer = "http://localhost:9"\naudience = ["hopline"]\n')
    settings: dict[str, Any] = {"authentication_providers_file": file, "authentication_provider": "away"}
    async with BrokerHouse(tmp_path, gateways=1, queues=1, **settings) as house:
        with capture_logs() as logged:
            for _ in range(5):
                async with SaslClient(house.ports[0]) as client:
                    refused = await client.begin("XOAUTH2", xoauth2(issuer.token()))
                    assert (refused.reply_code, "'away' does not answer" in refused.reply_text) == (541, True)
        told = [
            each["event"] for each in logged if each.get("provider") == "away" or each["event"] == "request refused"
        ]
        assert sorted(told) == [
            "a client could not sign in: its authentication provider could not judge it",
            "an issuer's keys cannot be read",
        ]
