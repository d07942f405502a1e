"""A commit of several processes whose answer does not come: design section 7. Clients are told the truth, and all is
whole. One that takes part alone: test_in_doubt_alone.py.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from pamqp import commands

from services.common.clients.leases import Leases
from services.common.errors import Unavailable
from services.common.partition import partition_of
from services.common.topology.slots import SlotName
from services.gateway.sessions import coordinator as transactions
from services.gateway.sessions.consumer import ConsumerState
from services.queue.links import transactions as participants
from services.queue.partitions.partition import PartitionState
from services.rpc import store_pb2
from tests.contract.gateway.test_settling import ready
from tests.contract.gateway.test_transactions import transactional
from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse, die

if TYPE_CHECKING:
    from tests.unit.gateway.sessions.test_in_doubt_alone import AloneDoubt

Tx, Channel = commands.Tx, commands.Channel
TIMES = 3


class House(BrokerHouse):
    """The queue `to` has another name in each, so that it is where a test wants it."""

    to = "to"


class Doubt:
    """Commits of the first gateway are not answered before it is `over`; `heard`: the store has heard the first."""

    alone = False

    def __init__(self, broker: House, monkeypatch: pytest.MonkeyPatch, *, heard: bool) -> None:
        self._store = broker.gateways[0]._broker.transactions._store
        self._commit = self._store.commit_transaction
        self.heard = heard
        self.asked: list[int] = []
        self.over = self.over_for_processes = False
        monkeypatch.setattr(self._store, "commit_transaction", self._asked)
        monkeypatch.setattr(self._store, "resolve_transaction", self._away)
        for queue in broker.queues.values():
            resolve = queue._host.store.resolve_transaction
            monkeypatch.setattr(queue._host.store, "resolve_transaction", self._when_back(resolve))

    def is_there(self) -> bool:
        """The gateway has asked, and again."""
        return len(self.asked) >= TIMES

    async def _asked(self, number: int, parts: int) -> store_pb2.TransactionOutcome:
        self.asked.append(number)
        if self.over:
            return await self._commit(number, parts)
        if self.heard and len(self.asked) == 1:
            assert (await self._commit(number, parts)).committed
        raise Unavailable("away")

    async def _away(self, _number: int) -> store_pb2.TransactionOutcome:
        raise Unavailable("away")

    def _when_back(self, resolve: Callable[[int], Any]) -> Callable[[int], Any]:
        return lambda number: resolve(number) if self.over or self.over_for_processes else self._away(number)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[House]:
    """Two of each, and its own for each test."""
    async with House(tmp_path) as house:
        yield house


@pytest.fixture(params=[True, False], ids=["committed", "not heard of"])
def doubt(broker: House, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Doubt:
    """The store dies after the commit and before the answer, or is away before it hears of it."""
    return Doubt(broker, monkeypatch, heard=request.param)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def owner_of(broker: House, name: str) -> str:
    """The queue process that a queue of this name is, or will be, served by."""
    number = partition_of(SlotName("/", name), broker.settings.partitions)
    return next(
        process
        for process, queue in broker.queues.items()
        if (partition := queue._host.registry.partitions.get(number)) and partition.state is PartitionState.SERVING
    )


def _served(broker: House) -> int:
    held = (each for queue in broker.queues.values() for each in queue._host.registry.partitions.values())
    return sum(each.state is PartitionState.SERVING for each in held)


async def declare_both(broker: House, client: AmqpClient, *, together: bool) -> None:
    """The queues `from` and `to`, in one process or in two."""
    await until(lambda: _served(broker) == broker.settings.partitions)
    broker.to = next(
        name
        for name in (f"to-{number}" for number in itertools.count())
        if (owner_of(broker, name) == owner_of(broker, "from")) is together
    )
    for name in ("from", broker.to):
        await client.declare(name, durable=True)


async def in_doubt(broker: House, doubt: Doubt | AloneDoubt, *, requeue: bool = False) -> AmqpClient:
    """A client whose commit takes "1" from the queue `from` and puts "2" into `to`, and is in doubt for a while.

    With `requeue` it gives "1" back instead.
    """
    client, other = await transactional(broker), await broker.connect()
    await declare_both(broker, client, together=doubt.alone)
    await other.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    other.publish(b"1", "from", delivery_mode=2)
    await other.confirmed(1)
    await client.call(1, commands.Basic.Consume(queue="from"), commands.Basic.ConsumeOk)
    await client.bodies(1)
    if requeue:
        client.send(1, commands.Basic.Reject(1, requeue=True))
    else:
        client.ack(1)
    client.publish(b"2", broker.to, delivery_mode=2)
    client.send(1, Tx.Commit())
    await until(doubt.is_there)
    assert not client.of(Tx.CommitOk)
    return client


async def all_is_decided(broker: House) -> None:
    """No partition waits for an outcome."""
    hosts = [queue._host for queue in broker.queues.values()]
    await until(lambda: not any(p.undecided for host in hosts for p in host.registry.partitions.values()))


async def accounts_are_zero(broker: House) -> None:
    """Nothing is undecided, reserved, held or counted by queue processes and gateways, once the queues are empty."""
    await all_is_decided(broker)
    hosts = [queue._host for queue in broker.queues.values()]
    queues = [queue for host in hosts for queue in host.registry.queues.values()]
    await until(lambda: all(not (queue._room.count or queue._room.size) and not queue.unsettled for queue in queues))
    await until(lambda: not any(host.account.used for host in hosts))
    await until(lambda: not any(gateway._broker.transactions.open.used for gateway in broker.gateways))


async def is_whole(broker: House, gateway: int = 0) -> None:
    """All of the transaction is done, once."""
    await all_is_decided(broker)
    other = await broker.connect(gateway)
    assert await ready(other, "from") == 0
    assert await ready(other, broker.to) == 1
    message = await other.get(broker.to, no_ack=True)
    assert message
    assert message.body == b"2"
    await accounts_are_zero(broker)
    assert await ready(other, "from") == 0


async def is_decided(broker: House, doubt: Doubt | AloneDoubt) -> None:
    """All of it is done when the store has committed it, and nothing when not."""
    await all_is_decided(broker)
    other, counts = await broker.connect(1), [0, 1] if doubt.heard else [1, 0]
    async with asyncio.timeout(60):
        while [await ready(other, name) for name in ("from", broker.to)] != counts:
            await asyncio.sleep(0.01)


async def test_a_client_waits_for_the_truth(broker: House, doubt: Doubt) -> None:
    """The gateway goes on asking to commit; the client hears commit-ok when it is, and queue processes with it."""
    client = await in_doubt(broker, doubt)
    doubt.over = True
    await client.expect(Tx.CommitOk)
    assert len(set(doubt.asked)) == 1
    await is_whole(broker)


async def test_a_commit_that_was_overtaken(broker: House, doubt: Doubt) -> None:
    """Another process asks first, which aborts what was not committed: then it is tried again, and done once."""
    client = await in_doubt(broker, doubt)
    doubt.over = True
    resolved = await broker.queues["queue-1"]._host.store.resolve_transaction(doubt.asked[0])
    await client.expect(Tx.CommitOk)
    assert len(set(doubt.asked)) == (1 if resolved.committed else 2)
    await is_whole(broker)


async def test_time_without_the_store_is_not_the_owners(
    broker: House, doubt: Doubt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the store was away, what was aborted meanwhile is tried again."""
    client = await in_doubt(broker, doubt)
    later = asyncio.get_running_loop().time() + 2 * transactions._PATIENCE
    monkeypatch.setattr(transactions, "_now", lambda: later)
    doubt.over = True
    await broker.queues["queue-1"]._host.store.resolve_transaction(doubt.asked[0])
    await client.expect(Tx.CommitOk)
    await is_whole(broker)


async def test_an_unknown_outcome(broker: House, doubt: Doubt, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the store may have forgotten it, the client is told so; processes that ask do all of it, or nothing."""
    monkeypatch.setattr(participants, "_UNTOLD_SECONDS", 0.1)
    client = await in_doubt(broker, doubt)
    monkeypatch.setattr(transactions, "_now", lambda: asyncio.get_running_loop().time() + transactions._DOUBT)
    closed = await client.expect(commands.Connection.Close)
    assert "not known" in closed.reply_text
    client.send(0, commands.Connection.CloseOk())
    await until(lambda: len(broker.gateways[0]._broker.sessions) == 1)
    doubt.over = True
    await is_decided(broker, doubt)


async def test_links_are_torn(broker: House, doubt: Doubt) -> None:
    """Queue processes ask by themselves; what is aborted is tried again, and the acked message does not come back."""
    client, other = await in_doubt(broker, doubt), await broker.connect(1)
    await other.call(1, commands.Basic.Consume(queue="from"), commands.Basic.ConsumeOk)
    links = list(broker.gateways[0]._broker.publisher._links.values())
    for link in links:
        link._over.set()
    await until(lambda: not any(link.up for link in links))
    await until(lambda: all(link.up for link in links))
    consumers = broker.gateways[0]._broker._consumers.values()
    await until(lambda: all(consumer.link for consumer in consumers))
    await until(lambda: not any(queue._host.departed for queue in broker.queues.values()))
    doubt.over_for_processes = True
    await all_is_decided(broker)
    doubt.over = True
    await client.expect(Tx.CommitOk)
    await is_whole(broker, 1)
    assert [message.body for message in [*client.messages(), *other.messages()]] == [b"1"]


async def test_a_gateway_dies(broker: House, doubt: Doubt) -> None:
    """All of it is done, or nothing, as the store has decided."""
    await in_doubt(broker, doubt)
    gateway = broker.gateways.pop(0)
    await gateway.stop()
    doubt.over = True
    await is_decided(broker, doubt)


async def test_queue_processes_die(broker: House, doubt: Doubt) -> None:
    """Their successors have all of what was committed, and what was not is tried again with them."""
    client = await in_doubt(broker, doubt)
    with patch.object(Leases, "stop", die):
        await asyncio.gather(*(queue.stop() for queue in broker.queues.values()))
    await asyncio.gather(*(broker.start_queue(name) for name in list(broker.queues)))
    doubt.over = True
    await client.expect(Tx.CommitOk, seconds=30)
    await is_whole(broker)


async def test_what_was_given_back_while_owners_died(broker: House, doubt: Doubt) -> None:
    """The next owner was told that it is held, before the outcome was known: it is not held, and may be delivered."""
    client = await in_doubt(broker, doubt, requeue=True)
    with patch.object(Leases, "stop", die):
        await asyncio.gather(*(queue.stop() for queue in broker.queues.values()))
    await asyncio.gather(*(broker.start_queue(name) for name in list(broker.queues)))
    consumers = broker.gateways[0]._broker._consumers.values()
    await until(lambda: all(consumer.state is ConsumerState.ATTACHED for consumer in consumers))
    doubt.over = True
    await client.expect(Tx.CommitOk, seconds=30)
    assert await client.bodies(2) == [b"1", b"1"]
    client.ack(2)
    await client.call(1, Tx.Commit(), Tx.CommitOk)
    await is_whole(broker, 1)


async def test_a_partition_is_handed_over_at_once(broker: House, doubt: Doubt) -> None:
    """Nothing is undecided any more once the doubt is over: an owner that leaves waits for nothing."""
    client = await in_doubt(broker, doubt)
    doubt.over = True
    await client.expect(Tx.CommitOk)
    await all_is_decided(broker)
    await broker.queues.pop("queue-1").stop()
    await is_whole(broker)


@pytest.mark.parametrize("closes", [True, False])
async def test_a_client_leaves(broker: House, doubt: Doubt, *, closes: bool) -> None:
    """A client that commits and closes, or vanishes, has committed; what it has acked does not come back."""
    client = await in_doubt(broker, doubt)
    if closes:
        client.send(0, commands.Connection.Close(200, "", 0, 0))
        await client.expect(commands.Connection.CloseOk)
    else:
        client.abort()
    doubt.over = True
    await until(lambda: not broker.gateways[0]._broker.transactions.open.used)
    await is_whole(broker)


async def test_what_comes_behind(broker: House, doubt: Doubt) -> None:
    """A rollback, and the end of the channel, wait for the commit before them, and take nothing of it back."""
    client = await in_doubt(broker, doubt)
    client.publish(b"3", broker.to, delivery_mode=2)
    client.send(1, Tx.Rollback(), Channel.Close(200, "", 0, 0))
    assert not client.of(Tx.RollbackOk)
    doubt.over = True
    for answer in (Tx.CommitOk, Tx.RollbackOk, Channel.CloseOk):
        await client.expect(answer)
    await is_whole(broker)
