"""Qpid's exchange.bound at a whole broker."""

from __future__ import annotations

from pamqp import commands

from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse
from tests.support.older_client import OlderClient
from tests.support.raw_amqp import method, short

Queue, Exchange = commands.Queue, commands.Exchange


async def test_what_is_bound(broker: BrokerHouse, name: str) -> None:
    """Right after bind-ok and unbind-ok, on another gateway and by another version of the family."""
    binder = await broker.connect(0)
    await _exchange(binder, name)
    async with OlderClient(broker.ports[1]) as asker:
        assert await _bound(asker, name, "k", name) == 2
        await binder.declare(name)
        assert await _bound(asker, name, "", "") == 3
        assert await _bound(asker, name, "", name) == 4
        for _ in range(20):
            assert await _bound(asker, name, "k", "") == 5
            assert await _bound(asker, name, "k", name) == 6
            await binder.call(1, Queue.Bind(queue=name, exchange=name, routing_key="k"), Queue.BindOk)
            assert [await _bound(asker, name, key, queue) for key in ("", "k") for queue in ("", name)] == [0] * 4
            await binder.call(1, Queue.Unbind(queue=name, exchange=name, routing_key="k"), Queue.UnbindOk)
        assert await _bound(asker, name + "-none", "k", name) == 1
        assert await _bound(asker, "", name, name) == 0


async def _exchange(client: AmqpClient, name: str) -> None:
    await client.call(1, Exchange.Declare(exchange=name, exchange_type="direct"), Exchange.DeclareOk)


async def _bound(client: OlderClient, exchange: str, key: str, queue: str) -> int:
    answer = await client.asks(method(40, 22, short(exchange) + short(key) + short(queue)))
    assert answer[:4] == b"\x00\x28\x00\x17"
    return int.from_bytes(answer[4:6])
