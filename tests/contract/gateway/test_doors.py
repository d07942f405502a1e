"""Limits of connections at a gateway: which clients are let in, and that others can connect meanwhile."""

from __future__ import annotations

import asyncio

import pytest
from pamqp import commands, frame
from structlog.testing import capture_logs

from services.common.access.records import Permission
from services.common.authentication.attempts import OF_USER_THERE
from services.common.clients.store import StoreClient
from services.mgmt.access.grants import Grants
from services.mgmt.users import Users
from tests.support.amqp_playbook import HEADER, written
from tests.support.broker_house import BrokerHouse
from tests.support.programs import until

_EVIL = "127.0.0.66"


async def _refusal(broker: BrokerHouse, password: str) -> commands.Connection.Close:
    client = await broker.connect(password=password, source=_EVIL)
    [close] = client.of(commands.Connection.Close)
    client.writer.close()
    return close


async def test_guessing_passwords_keeps_no_other_out(broker: BrokerHouse) -> None:
    """While one address tries passwords, the same user comes in from another; each try is answered with 403."""
    with capture_logs() as logged:
        guesses = [asyncio.create_task(_refusal(broker, f"guess {number}")) for number in range(100)]
        await asyncio.sleep(0)
        client = await broker.connect()
        assert client.of(commands.Connection.OpenOk)
        closes = await asyncio.gather(*guesses)
        closes.append(await _refusal(broker, "guest"))
    assert {close.reply_code for close in closes} == {403}
    assert sum("wait" in close.reply_text for close in closes) >= 101 - OF_USER_THERE.burst - 2
    events = [line["event"] for line in logged if line.get("address", _EVIL) == _EVIL]
    assert events.count("too many wrong passwords: more are refused for a time") == 1
    assert events.count("request refused") <= OF_USER_THERE.burst + 2
    assert events.count("connection ended") <= OF_USER_THERE.burst + 2


async def test_one_connection_too_many(broker: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client beyond the limit gets 530 at connection.open, and is let in when there is room."""
    doors = broker.gateways[0]._listener.doors
    await broker.connect()
    with monkeypatch.context() as patched:
        patched.setattr(doors, "limit", 1)  # some of other tests may still be about to leave
        [close] = (await broker.connect()).of(commands.Connection.Close)
    assert (close.reply_code, close.class_id, close.method_id) == (530, 10, 40)
    assert (await broker.connect()).of(commands.Connection.OpenOk)


async def test_what_strangers_do_is_a_few_lines(broker: BrokerHouse) -> None:
    """A peer that speaks no AMQP is told so each time; the log says so a few times, and then how often."""
    with capture_logs() as told:
        for _ in range(70):
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.ports[0])
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert await reader.read() == HEADER
            writer.close()
    assert 0 < len([each for each in told if each["event"] == "connection ended"]) <= 50


async def test_half_open_peers_make_room(broker: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many connect and say nothing, the next client gets in."""
    doors = broker.gateways[0]._listener.doors
    monkeypatch.setattr(doors, "sockets", len(doors._in) + 10)
    idle = [await asyncio.open_connection("127.0.0.1", broker.ports[0]) for _ in range(50)]
    try:
        assert (await broker.connect()).of(commands.Connection.OpenOk)
        assert len(doors._coming) <= 10
    finally:
        for _, writer in idle:
            writer.close()


async def test_a_client_that_reads_no_answers_is_read_no_further(broker: BrokerHouse) -> None:
    """A client that asks and asks gets as many answers as its socket takes, and the others when it reads."""
    client = await broker.connect()
    [*_, connection] = broker.gateways[0]._listener._connections
    client.stop_reading()
    asked, before = 30_000, len(client.frames)
    client.writer.write(written(1, commands.Basic.Cancel("x" * 250)) * asked)
    async with asyncio.timeout(30):
        while connection._unread not in connection._holds:
            await asyncio.sleep(0.01)
    assert connection._transport.get_write_buffer_size() < 4 << 20
    client.read_on()
    await client.until(lambda: len(client.frames) == before + asked, 30)
    assert len(client.of(commands.Basic.CancelOk)) == asked


async def test_a_deleted_user_is_disconnected(broker: BrokerHouse) -> None:
    """On every gateway, with 320; others stay."""
    store = StoreClient(broker.address_of("store"))
    users = Users(store)
    await users.put("leaving", "secret", (), loopback_only=False)
    await Grants(store).put_permission(Permission(user="leaving"))
    stays = await broker.connect()
    for gateway in broker.gateways:
        await until(lambda gateway=gateway: "leaving" in gateway._listener.authenticator.known.users)
    clients = [await broker.connect(number, user="leaving", password="secret") for number in range(2)]
    await users.delete("leaving")
    for client in clients:
        close = await client.expect(commands.Connection.Close)
        assert (close.reply_code, close.reply_text) == (320, "CONNECTION_FORCED - user 'leaving' is deleted")
    await stays.prefetch(1)
    await store.close()


async def test_a_client_that_sends_all_at_once_is_no_stranger_for_ever(broker: BrokerHouse) -> None:
    """What came before the password was compared counts as a stranger's until the connection is open, and no longer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.ports[0])
    start_ok = commands.Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US")
    tune_ok, open_it = commands.Connection.TuneOk(0, 0, 0), commands.Connection.Open("/")
    writer.write(HEADER + written(0, start_ok, tune_ok, open_it))
    await _read_until(reader, commands.Connection.OpenOk)
    assert broker.gateways[0]._listener.incoming._strangers.total == 0
    writer.close()


async def _read_until(reader: asyncio.StreamReader, kind: type) -> None:
    """Returns with the first frame of that kind."""
    data = b""
    async with asyncio.timeout(10):
        while True:
            data += await reader.read(65536)
            while len(data) > 7 and len(data) >= (size := int.from_bytes(data[3:7], "big") + 8):
                _, _, value = frame.unmarshal(data[:size])
                data = data[size:]
                if isinstance(value, kind):
                    return
