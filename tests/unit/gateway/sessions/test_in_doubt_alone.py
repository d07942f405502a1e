"""A commit in which one queue process takes part, and whose answer does not come: design section 7.

What the process writes decides. Whatever is lost meanwhile, clients are told the truth, and all is done once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
from pamqp import commands

from services.common.clients.leases import Leases
from services.common.clients.queue_link import QueueLink
from services.common.errors import Unavailable
from services.gateway.sessions import coordinator
from services.gateway.sessions.consumer import ConsumerState
from services.rpc import queue_pb2, store_pb2
from tests.contract.gateway.test_settling import ready
from tests.contract.gateway.test_transactions import transactional
from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import die
from tests.unit.gateway.sessions.test_in_doubt import House, declare_both, in_doubt, is_decided, is_whole, until

Tx = commands.Tx


class AloneDoubt:
    """Frames that decide are not answered before it is `over`; `heard`: the store has committed the first of them."""

    alone = True

    def __init__(self, broker: House, monkeypatch: pytest.MonkeyPatch, *, heard: bool) -> None:
        self.heard = heard
        self.asked: list[int] = []
        self._over = asyncio.Event()
        for queue in broker.queues.values():
            append = queue._host.writer._journal.append
            monkeypatch.setattr(queue._host.writer._journal, "append", lambda f, a=append: self._append(f, a))

    def is_there(self) -> bool:
        """A queue process has written its part."""
        return bool(self.asked)

    def end(self) -> None:
        """What was not answered is."""
        self._over.set()

    def _append(self, frame: store_pb2.JournalFrame, append: object) -> object:
        if not frame.decides or self._over.is_set():
            return append(frame)  # type: ignore[operator]
        self.asked.append(frame.transaction)
        written = append(frame) if self.heard else None  # type: ignore[operator]

        async def answered() -> store_pb2.JournalAck:
            await self._over.wait()
            return await (written or append(frame))  # type: ignore[operator, no-any-return]

        return asyncio.ensure_future(answered())


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[House]:
    """Two of each, and its own for each test."""
    async with House(tmp_path) as house:
        yield house


@pytest.fixture(params=[True, False], ids=["committed", "not heard of"])
def doubt(broker: House, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> AloneDoubt:
    """The store has it and does not answer, or does not hear of it."""
    return AloneDoubt(broker, monkeypatch, heard=request.param)


async def begun(broker: House, doubt: AloneDoubt) -> AmqpClient:
    """A client whose commit is in doubt: it settles in one queue, and publishes to another of the same process."""
    client = await in_doubt(broker, doubt)
    if doubt.heard:
        transactions = broker.store._engine.transactions
        await until(lambda: transactions.outcome(doubt.asked[0]))
    return client


async def links_break(broker: House) -> None:
    """Those of the first gateway break, and are there again."""
    links = list(broker.gateways[0]._broker.publisher._links.values())
    for link in links:
        link._over.set()
    await until(lambda: not any(link.up for link in links))
    await until(lambda: all(link.up for link in links))


async def test_the_store_is_not_asked(broker: House, doubt: AloneDoubt, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the process writes is the decision: no other call is made for it."""

    async def never(*_: object, **__: object) -> None:
        raise AssertionError("asked")

    for name in ("commit_transaction", "resolve_transaction"):
        monkeypatch.setattr(broker.gateways[0]._broker.transactions._store, name, never)
    client = await begun(broker, doubt)
    doubt.end()
    await client.expect(Tx.CommitOk)
    assert len(doubt.asked) == 1
    await is_whole(broker)


async def test_another_asks_first(broker: House, doubt: AloneDoubt) -> None:
    """Which aborts what was not committed: then it is tried again, and done once."""
    client = await begun(broker, doubt)
    resolved = await broker.queues["queue-1"]._host.store.resolve_transaction(doubt.asked[0])
    assert resolved.committed is doubt.heard
    doubt.end()
    await client.expect(Tx.CommitOk)
    await is_whole(broker)


async def test_the_stream_breaks(broker: House, doubt: AloneDoubt) -> None:
    """Both sides ask the store; the acknowledged message does not come back, and nothing is there twice."""
    client, other = await begun(broker, doubt), await broker.connect(1)
    await links_break(broker)
    doubt.end()
    await client.expect(Tx.CommitOk)
    await other.call(1, commands.Basic.Consume(queue="from"), commands.Basic.ConsumeOk)
    await is_whole(broker, 1)
    assert [message.body for message in [*client.messages(), *other.messages()]] == [b"1"]


async def test_what_was_given_back_while_the_stream_broke(
    broker: House, doubt: AloneDoubt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new stream has told that it is held before the gateway knows the outcome: it comes back all the same."""
    client = await in_doubt(broker, doubt, requeue=True)
    store = broker.gateways[0]._broker.transactions._store
    resolve, asked, answer = store.resolve_transaction, asyncio.Event(), asyncio.Event()

    async def later(number: int) -> store_pb2.TransactionOutcome:
        asked.set()
        await answer.wait()
        return await resolve(number)

    monkeypatch.setattr(store, "resolve_transaction", later)
    await links_break(broker)
    await asked.wait()
    doubt.end()
    consumers = broker.gateways[0]._broker._consumers.values()
    await until(lambda: all(consumer.state is ConsumerState.ATTACHED for consumer in consumers))
    answer.set()
    await client.expect(Tx.CommitOk)
    assert await client.bodies(2) == [b"1", b"1"]
    client.ack(2)
    await client.call(1, Tx.Commit(), Tx.CommitOk)
    await is_whole(broker, 1)


async def test_nothing_durable_waits_for_no_store(broker: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction of transient messages whose stream breaks is tried again at once, though the store is away."""
    client = await transactional(broker)
    await declare_both(broker, client, together=True)
    transactions = broker.gateways[0]._broker.transactions

    async def away(*_: object, **__: object) -> None:
        raise Unavailable("away")

    for name in ("commit_transaction", "resolve_transaction"):
        monkeypatch.setattr(transactions._store, name, away)
    prepared, broken = transactions.prepared, list[QueueLink]()

    def break_once(link: QueueLink, said: queue_pb2.Prepared) -> None:
        if broken:
            prepared(link, said)
        else:
            broken.append(link)
            link._over.set()

    monkeypatch.setattr(transactions, "prepared", break_once)
    client.publish(b"1", broker.to, delivery_mode=1)
    await client.call(1, Tx.Commit(), Tx.CommitOk)
    assert broken
    assert await ready(client, broker.to) == 1


async def test_a_fault_behind_what_decides(broker: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written is not refused: the process asks the store what has become of it."""
    for queue in broker.queues.values():
        writer = queue._host.writer
        monkeypatch.setattr(writer, "stage", partial(_stage_and_fail, writer.stage))
    client = await transactional(broker)
    await declare_both(broker, client, together=True)
    client.publish(b"2", broker.to, delivery_mode=2)
    await client.call(1, Tx.Commit(), Tx.CommitOk)
    assert await ready(client, broker.to) == 1


def _stage_and_fail(stage: Callable[..., object], *part: object, **how: object) -> object:
    stage(*part, **how)
    raise RuntimeError("a fault")


async def test_nobody_answers(broker: House, doubt: AloneDoubt, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway asks the store in the end: the client hears commit-ok, or that nothing of it is done."""
    monkeypatch.setattr(coordinator, "_PATIENCE", 0.2)
    client = await begun(broker, doubt)
    if doubt.heard:
        await client.expect(Tx.CommitOk)
    else:
        closed = await client.expect(commands.Connection.Close)
        assert "did not answer" in closed.reply_text
        client.send(0, commands.Connection.CloseOk())
    doubt.end()
    await is_decided(broker, doubt)


async def test_the_gateway_dies(broker: House, doubt: AloneDoubt) -> None:
    """All of it is done, or nothing, as the store has decided."""
    await begun(broker, doubt)
    gateway = broker.gateways.pop(0)
    await gateway.stop()
    await is_decided(broker, doubt)
    doubt.end()
    await is_decided(broker, doubt)


async def test_the_process_dies(broker: House, doubt: AloneDoubt) -> None:
    """Its successor has all of what was committed, and what was not is tried again with it."""
    client = await begun(broker, doubt)
    with patch.object(Leases, "stop", die):
        await asyncio.gather(*(queue.stop() for queue in broker.queues.values()))
    doubt.end()
    await asyncio.gather(*(broker.start_queue(name) for name in list(broker.queues)))
    await client.expect(Tx.CommitOk, seconds=30)
    await is_whole(broker)


async def test_its_partitions_move(broker: House, doubt: AloneDoubt) -> None:
    """An owner that leaves asks the store first: the next one has all of it, or none and then all of it."""
    client = await begun(broker, doubt)
    leaving = broker.queues.pop(next(name for name, queue in broker.queues.items() if _undecided(queue)))
    await leaving.stop()
    doubt.end()
    await client.expect(Tx.CommitOk, seconds=30)
    await is_whole(broker)


def _undecided(queue: object) -> bool:
    partitions = queue._host.registry.partitions.values()  # type: ignore[attr-defined]
    return any(partition.undecided for partition in partitions)
