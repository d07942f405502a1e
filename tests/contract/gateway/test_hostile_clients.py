"""Bad input of one client hurts that client only: the others go on publishing and consuming.

Each attack is legal on the wire, or nearly. It has to be answered, with what it asked for or with the protocol's error,
no service may find it a fault of its own, and afterwards clients of both gateways are served by both queue processes.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pamqp import commands
from structlog.testing import capture_logs

from tests.support import raw_amqp as raw
from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse
from tests.support.field_tables import nested, sized
from tests.support.former_headers import any_headers_taken

Attack = Callable[[AmqpClient, str], Awaitable[None]]

_CLOSES = (commands.Channel.Close, commands.Connection.Close)
_LONG = "ü" * 127 + "x"  # 255 bytes
_ODD_NAME = "\0\u202e\U0010ffff￿ \n'\"\\*#>." + "ő" * 115

_ODD: dict[str, bytes] = {
    "nothing": b"V",
    "true": b"t\x01",
    "least": b"l" + struct.pack(">q", -(1 << 63)),
    "most": b"l" + struct.pack(">q", (1 << 63) - 1),
    "float": b"d" + struct.pack(">d", 1.5),
    "nan": b"d" + struct.pack(">d", float("nan")),
    "infinite": b"f" + struct.pack(">f", float("-inf")),
    "decimal": b"D\xff\x7f\xff\xff\xff",
    "time": b"T" + b"\xff" * 8,
    "text": sized(b"S", b"x"),
    "long text": sized(b"S", b"x" * 300),
    "longer text": sized(b"S", b"x" * 20_000),
    "no text": sized(b"S", b"\xff\xfe\0"),
    "bytes": sized(b"x", b"\xff"),
    "array": sized(b"A", b"V" + sized(b"A", b"")),
    "table": sized(b"F", b""),
    "like a decimal": sized(b"F", raw.short("!decimal") + sized(b"S", b"x")),
    "like nan": sized(b"F", raw.short("!decimal") + sized(b"S", b"NaN")),
}
_ARGUMENTS = [
    "x-consumer-timeout", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-dead-letter-strategy",
    "x-delivery-limit", "x-expires", "x-match", "x-max-in-memory-bytes", "x-max-length", "x-max-length-bytes",
    "x-max-priority", "x-message-ttl", "x-overflow", "x-queue-mode", "x-queue-type", "x-queue-version",
    "x-single-active-consumer", "x-unknown", "!decimal", _LONG,
]  # fmt: skip


async def _answered(client: AmqpClient, data: bytes, kind: Any) -> Any:
    """Sends bytes and gives the answer; a channel that was closed for it is open again."""
    client.writer.write(data)
    answer = await client.expect((kind, *_CLOSES))
    if isinstance(answer, commands.Channel.Close):
        client.send(1, commands.Channel.CloseOk())
        await client.call(1, commands.Channel.Open(), commands.Channel.OpenOk)
    return answer


async def _arguments_of_wrong_types(client: AmqpClient, name: str) -> None:
    for argument in _ARGUMENTS:
        for value in _ODD.values():
            table = sized(b"", raw.short(argument) + value)
            answer = await _answered(client, raw.declare_queue(name, table), commands.Queue.DeclareOk)
            assert not isinstance(answer, commands.Connection.Close), (argument, value, answer.reply_text)
            if isinstance(answer, commands.Queue.DeclareOk):
                await client.call(1, commands.Queue.Delete(queue=name), commands.Queue.DeleteOk)


async def _exchanges_with_odd_arguments(client: AmqpClient, name: str) -> None:
    for kind in ("direct", "headers", "topic", "fanout"):
        for value in _ODD.values():
            table = raw.table(alternate_exchange=value)
            answer = await _answered(client, raw.declare_exchange(name, kind, table), commands.Exchange.DeclareOk)
            if isinstance(answer, commands.Exchange.DeclareOk):
                await client.call(1, commands.Exchange.Delete(exchange=name), commands.Exchange.DeleteOk)


async def _bindings_with_odd_arguments(client: AmqpClient, name: str) -> None:
    await client.declare(name)
    for exchange in ("amq.direct", "amq.fanout", "amq.topic", "amq.match"):
        for argument in ("n", "x-match", "!decimal"):
            for value in _ODD.values():
                table = sized(b"", raw.short(argument) + value)
                await _answered(client, raw.bind_queue(name, exchange, "#.*", table), commands.Queue.BindOk)
                client.writer.write(raw.publish(b"m", "a", exchange=exchange, headers=table))
                await _answered(client, raw.unbind_queue(name, exchange, "#.*", table), commands.Queue.UnbindOk)


async def _a_queue_ends_with_its_odd_bindings(client: AmqpClient, name: str) -> None:
    table = sized(b"", b"".join(raw.short(each) + value for each, value in _ODD.items()))
    await _answered(client, raw.declare_queue(name, raw.table(x_expires=b"I\0\0\0\x01")), commands.Queue.DeclareOk)
    await _answered(client, raw.bind_queue(name, "amq.match", "", table), commands.Queue.BindOk)
    while not isinstance(
        await _answered(client, raw.bind_queue(name, "amq.topic", ""), commands.Queue.BindOk), _CLOSES
    ):
        pass


async def _chains_of_exchanges(client: AmqpClient, name: str) -> None:
    last = name
    await client.declare(name)
    for number in range(450):
        exchange = f"{name}-{number}"
        table = raw.table(alternate_exchange=sized(b"S", last.encode()))
        declare = raw.declare_exchange(exchange, "direct", table, auto_delete=True)
        await _answered(client, declare, commands.Exchange.DeclareOk)
        bind = raw.bind_exchange(last, exchange, "k") if number else raw.bind_queue(last, exchange, "k")
        await _answered(client, bind, (commands.Exchange.BindOk, commands.Queue.BindOk))
        last = exchange
    client.publish(b"through all of them", "k", exchange=last)
    assert (await client.call(1, commands.Queue.Purge(queue=name), commands.Queue.PurgeOk)).message_count == 1
    await client.call(1, commands.Queue.Delete(queue=name), commands.Queue.DeleteOk)
    assert await client.refused(1, commands.Exchange.Declare(exchange=last, passive=True)) == 404


async def _circles_of_exchanges(client: AmqpClient, name: str) -> None:
    for number in range(3):
        table = raw.table(alternate_exchange=sized(b"S", f"{name}-{(number + 1) % 3}".encode()))
        declare = raw.declare_exchange(f"{name}-{number}", "fanout", table, auto_delete=True)
        await _answered(client, declare, commands.Exchange.DeclareOk)
    for number in range(3):
        for other in range(3):
            bind = raw.bind_exchange(f"{name}-{other}", f"{name}-{number}", "")
            await _answered(client, bind, commands.Exchange.BindOk)
    client.publish(b"round", "", exchange=f"{name}-0")
    await client.call(1, commands.Exchange.Delete(exchange=f"{name}-1"), commands.Exchange.DeleteOk)


async def _odd_names(client: AmqpClient, name: str) -> None:
    for odd in (_LONG, _ODD_NAME):
        await _answered(client, raw.declare_queue(odd), commands.Queue.DeclareOk)
        await _answered(client, raw.declare_exchange(odd, "topic"), commands.Exchange.DeclareOk)
        await _answered(client, raw.bind_queue(odd, odd, odd), commands.Queue.BindOk)
        await _answered(client, raw.consume(odd, tag=odd), commands.Basic.ConsumeOk)
        client.writer.write(raw.publish(b"odd", odd, exchange=odd))
        await client.until(lambda odd=odd: any(each.method.consumer_tag == odd for each in client.messages()))  # type: ignore[misc]
        await _answered(client, raw.delete_exchange(odd), commands.Exchange.DeleteOk)
        await _answered(client, raw.delete_queue(odd), commands.Queue.DeleteOk)


async def _consumers_with_odd_arguments(client: AmqpClient, name: str) -> None:
    await client.declare(name)
    for value in _ODD.values():
        await _answered(client, raw.consume(name, raw.table(x_priority=value, n=value)), commands.Basic.ConsumeOk)


async def _dead_letters_with_odd_headers(client: AmqpClient, name: str) -> None:
    """Each is dead-lettered, by its time or by its consumer, and none is missing; also what was stored before."""
    with any_headers_taken():
        await _dead_letters_with_any_headers(client, name)


async def _dead_letters_with_any_headers(client: AmqpClient, name: str) -> None:
    arguments = raw.table(x_dead_letter_exchange=sized(b"S", b""), x_dead_letter_routing_key=sized(b"S", name.encode()))
    await _answered(client, raw.declare_queue(f"{name}-source", arguments), commands.Queue.DeclareOk)
    await client.declare(name)
    headers = ("n", "x-death", "x-first-death-reason", _LONG)
    tables = [sized(b"", raw.short(header) + value) for header in headers for value in _ODD.values()]
    # What is no array there is refused at once.
    tables += [sized(b"", raw.short(each) + sized(b"A", value)) for each in ("CC", "BCC") for value in _ODD.values()]
    tables += [_forged(value) for value in _ODD.values()]
    tables += [b"\0\0\0\x05\x01n?xx", sized(b"", b"\x02\xff\xfeV"), nested(1000), nested(1000, in_arrays=True)]
    tables += [nested(60), sized(b"", raw.short("n") + b"V" + raw.short("n") + b"V")]
    for table in tables:
        client.writer.write(raw.publish(b"m", f"{name}-source", headers=table, expiration="0"))
    client.writer.write(raw.publish(b"m", f"{name}-source", expiration="315360000000"))
    await client.consume(f"{name}-source")
    left = len(tables) + 1
    while left:
        for each in client.messages(channel=1):
            client.send(1, commands.Basic.Reject(each.tag, requeue=False))
        client.frames.clear()
        client._seen = 0
        left -= (await client.call(1, commands.Queue.Purge(queue=name), commands.Queue.PurgeOk)).message_count


def _forged(value: bytes) -> bytes:
    fields = {"count": value, "reason": sized(b"S", b"expired"), "queue": value, "time": value, "routing-keys": value}
    death = sized(b"F", b"".join(raw.short(each) + held for each, held in fields.items()))
    return raw.table(x_death=sized(b"A", death + value))


async def _dead_letter_keys_that_nobody_can_be_told(client: AmqpClient, name: str) -> None:
    for argument in ("x_dead_letter_routing_key", "x_dead_letter_exchange"):
        arguments = raw.table(x_dead_letter_exchange=sized(b"S", b"")) if argument.endswith("key") else raw.table()
        arguments = sized(b"", arguments[4:] + raw.table(**{argument: sized(b"S", b"k" * 256)})[4:])
        answer = await _answered(client, raw.declare_queue(name, arguments), commands.Queue.DeclareOk)
        assert isinstance(answer, commands.Channel.Close)
        assert (answer.reply_code, "longer than 255 bytes" in answer.reply_text) == (406, True)


async def _headers_that_are_no_table(client: AmqpClient, name: str) -> None:
    await client.declare(name)
    client.writer.write(raw.publish(b"good", name) + raw.publish(b"m", name, headers=b"\0\0\0\x05\x01n?xx"))
    answer = await client.expect(_CLOSES)
    assert (type(answer), answer.reply_code) == (commands.Connection.Close, 502)


async def _tables_too_deep(client: AmqpClient, name: str) -> None:
    answer = await _answered(client, raw.declare_queue(name, nested(10_000)), commands.Queue.DeclareOk)
    assert (type(answer), answer.reply_code) == (commands.Connection.Close, 502)


async def _arrays_too_deep(client: AmqpClient, name: str) -> None:
    data = raw.bind_queue(name, "amq.match", "", nested(10_000, in_arrays=True))
    answer = await _answered(client, data, commands.Queue.BindOk)
    assert (type(answer), answer.reply_code) == (commands.Connection.Close, 502)


async def _headers_that_no_exchange_can_read(client: AmqpClient, name: str) -> None:
    await client.declare(name)
    await _answered(client, raw.bind_queue(name, "amq.match", "", raw.table(n=b"V")), commands.Queue.BindOk)
    client.writer.write(raw.publish(b"m", "", exchange="amq.match", headers=nested(1000)))
    answer = await client.expect(_CLOSES)
    assert answer.reply_code == 502


async def _headers_that_nobody_could_read_at_once(client: AmqpClient, name: str) -> None:
    await client.declare(name)
    client.writer.write(raw.publish(b"m", name, headers=nested(10_000)))
    answer = await client.expect(_CLOSES)
    assert (type(answer), answer.reply_code) == (commands.Channel.Close, 406)


async def _settlements_of_nothing(client: AmqpClient, name: str) -> None:
    for tag in (1, (1 << 63) - 1):
        assert await client.refused(1, commands.Basic.Ack(tag)) == 406
        assert await client.refused(1, commands.Basic.Nack(tag, multiple=True)) == 406


_ATTACKS: list[Attack] = [
    _arguments_of_wrong_types,
    _exchanges_with_odd_arguments,
    _bindings_with_odd_arguments,
    _a_queue_ends_with_its_odd_bindings,
    _chains_of_exchanges,
    _circles_of_exchanges,
    _odd_names,
    _consumers_with_odd_arguments,
    _dead_letters_with_odd_headers,
    _dead_letter_keys_that_nobody_can_be_told,
    _tables_too_deep,
    _arrays_too_deep,
    _headers_that_no_exchange_can_read,
    _headers_that_are_no_table,
    _headers_that_nobody_could_read_at_once,
    _settlements_of_nothing,
]


@pytest.mark.parametrize("attack", _ATTACKS, ids=lambda attack: attack.__name__.strip("_"))
async def test_only_the_client_that_asks_is_answered(broker: BrokerHouse, name: str, attack: Attack) -> None:
    """The attack is answered as its client's fault, and others notice nothing of it."""
    witness = await broker.connect(1)
    with capture_logs() as told:
        await attack(await broker.connect(0), name)
        await _is_served(witness, f"{name}-witness")
        await _is_served(await broker.connect(0), f"{name}-later")
    assert [each for each in told if each["log_level"] in ("error", "critical")] == []


async def _is_served(client: AmqpClient, name: str) -> None:
    """Publishes to queues of several partitions and consumes from them."""
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    for number in range(8):
        await client.declare(f"{name}-{number}")
        await client.consume(f"{name}-{number}", tag=f"{name}-{number}")
        client.publish(b"served", f"{name}-{number}")
    await client.confirmed(8)
    await client.bodies(8)
