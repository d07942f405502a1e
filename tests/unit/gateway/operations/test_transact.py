"""What is told of a transaction that could not be committed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock, call

import pytest

from services.common.clients.pressure import Congestion, Pressure
from services.common.clients.queue_link import QueueLink
from services.common.errors import BrokerError, InDoubt, NotFound, PreconditionFailed, Unavailable
from services.gateway import vocabulary as v
from services.gateway.observe.observer import Followed
from services.gateway.operations import transact
from services.gateway.outcomes import ACCEPTED
from services.gateway.sessions.coordinator import Coordinator
from services.gateway.sessions.transaction import OpenTransactions, Publication
from services.gateway.sessions.transactions import OWN, Transactions
from tests.support.messages import kind, messages, published
from tests.support.published import Client, ScriptedRouter


@pytest.mark.parametrize(
    ("error", "recorded", "traced"),
    [(PreconditionFailed("full"), [call.rolled_back()], [call.rolled_back()]), (InDoubt("?"), [], [call.in_doubt()])],
    ids=["refused", "in doubt"],
)
async def test_no_client_is_told_what_may_be_untrue(error: BrokerError, recorded: list[Any], traced: list[Any]) -> None:
    """What may have been committed is not on record as rolled back; its spans say that it is unknown."""
    publication = Publication(Mock(), messages([b"a"]), Followed(Mock(), Mock()))
    transactions = Transactions()
    transactions.select(OpenTransactions(1 << 20))
    transaction = transactions.under_way(OWN)
    transaction.add(publication)
    broker = SimpleNamespace(transactions=SimpleNamespace(commit=AsyncMock(side_effect=error)))
    session = cast("Any", SimpleNamespace(transactions=transactions, broker=broker))
    with pytest.raises(type(error)):
        await transact.commit(session, v.Commit(1))
    assert cast("Mock", publication.followed.recorded).mock_calls == recorded
    assert cast("Mock", publication.followed.traced).mock_calls == traced
    assert transaction.open.used == 0


async def test_a_store_that_says_nothing_for_too_long() -> None:
    """It may have committed, and may have forgotten that it has."""
    store = Mock(commit_transaction=AsyncMock(side_effect=Unavailable("away")))
    with pytest.raises(InDoubt):
        await Coordinator(Mock(), store, Mock())._outcome(7, store.commit_transaction, 0.0)


async def test_who_publishes_to_a_full_queue_waits() -> None:
    """With what a transaction collects, and when it is committed."""
    client, full = Client(ScriptedRouter({"b": (2,)})), set[int]()
    client.handed.links[2] = link = QueueLink("", "", Mock(), Mock(), Mock())
    link.full = full
    client.broker.transactions.commit = AsyncMock()
    publish = published([b"1", b"2"], kind(routing_key="a"), kind(routing_key="b"))
    await client.does(v.SelectTransactions(1), publish)
    assert client.pressure == []
    full.add(2)
    await client.does(v.Commit(1))
    await client.does(published([b"3"], kind(routing_key="b")), published([b"4"], kind(routing_key="a")))
    assert client.pressure == [Pressure(Congestion.BLOCKED, link, (2,))] * 2


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("holds", [False, True], ids=["consumes", "holds"])
async def test_who_takes_from_the_full_queue_itself_goes_on(*, everywhere: bool, holds: bool) -> None:
    """It settles what makes room in the same transactions, and would not be read: it would stand still for ever."""
    client = Client(ScriptedRouter({"b": (2,), "c": (3,)}))
    link = client.handed.links[1] = client.handed.links[2] = QueueLink("", "", Mock(), Mock(), Mock())
    other = client.handed.links[3] = QueueLink("", "", Mock(), Mock(), Mock())
    link.full, link.full_everywhere, other.full = {2}, everywhere, {3}
    client.broker.transactions.commit = AsyncMock()
    consumer = cast("Any", Mock(queue_id=2, takes=True, browse=False, unsettled={}))
    if holds:
        client.session.numbers.add(consumer, [7])
    else:
        client.session.consumers["t"] = consumer
    await client.does(v.SelectTransactions(1), published([b"1"], kind(routing_key="b")), v.Commit(1))
    await client.does(published([b"2"], kind(routing_key="a")))  # full only where its process is
    assert client.pressure == []
    await client.does(published([b"3"], kind(routing_key="c")))
    assert client.pressure == [Pressure(Congestion.BLOCKED, other, (3,))]


async def test_who_numbers_messages_hears_at_once() -> None:
    """That the transaction has them, before it is committed: its client waits for that with the commit."""
    client = Client(ScriptedRouter())
    client.broker.transactions.commit = AsyncMock()
    await client.does(v.Produce(1, "", "a", link=7), v.DeclareTransaction(1))
    publish = published([b"1", b"2"], kind(routing_key="a"), first=1)
    publish.link, publish.transaction = 7, 1
    await client.does(publish)
    assert client.handed.bodies == []
    assert [(each.link, each.first, each.last, each.outcome) for each in client.told] == [(7, 1, 2, ACCEPTED)]
    await client.does(v.Commit(1, 1))
    [[transaction], _] = client.broker.transactions.commit.call_args
    assert [each.messages.bodies for each in transaction.publications] == [[b"1", b"2"]]
    assert client.errors == []


async def test_what_is_for_no_queue_keeps_it_from_being_committed() -> None:
    """It would not be whole: its client hears so of the message, and of the commit."""
    client = Client(ScriptedRouter({"none": ()}))
    client.broker.transactions.commit = AsyncMock()
    await client.does(v.Produce(1, "", "none", link=7), v.DeclareTransaction(1))
    publish = published([b"1"], kind(routing_key="none", mandatory=True), first=1)
    publish.link, publish.transaction = 7, 1
    await client.does(publish, v.Commit(1, 1))
    assert [each.indexes for each in client.back] == [[0]]
    assert [type(each) for each in client.errors] == [NotFound]
    client.broker.transactions.commit.assert_not_called()
    assert not client.session.transactions


async def test_transactions_that_take_turns() -> None:
    """Each has its own; what was settled in one that is rolled back is unsettled again."""
    client = Client(ScriptedRouter())
    client.broker.transactions.commit = AsyncMock()
    consumer = cast("Any", Mock(queue_id=2, takes=True, browse=False, unsettled={}))
    client.session.numbers.add(consumer, [11, 12, 13])
    await client.does(v.DeclareTransaction(1), v.DeclareTransaction(1))
    await client.does(v.Settle(1, 1, 1, ACCEPTED, 1), v.Settle(1, 2, 2, ACCEPTED, 2), v.Settle(1, 3, 3, ACCEPTED, 1))
    assert (consumer.unsettled, client.session.transactions.settling) == ({}, 3)
    await client.does(v.Rollback(1, 1))
    assert consumer.unsettled == {1: 11, 3: 13}
    await client.does(v.Commit(1, 2))
    [[transaction], _] = client.broker.transactions.commit.call_args
    assert [each.uid for each in transaction.settlements] == [12]
    assert not client.session.transactions


async def test_what_was_kept_for_too_long_is_not_settled_in_a_transaction() -> None:
    """It is another's by now: committed without it, a transaction would be half of what its client wanted."""
    client = Client(ScriptedRouter({}))
    client.broker.transactions.commit = AsyncMock()
    consumer = cast("Any", Mock(queue_id=1, takes=True, browse=False, unsettled={}))
    client.session.numbers.add(consumer, [7, 8])
    client.session.numbers.take_late([1])
    await client.does(v.SelectTransactions(1), v.Settle(1, 1, 2, ACCEPTED))
    with pytest.raises(PreconditionFailed):
        await transact.commit(client.session, v.Commit(1))
    assert client.broker.transactions.commit.mock_calls == []
    assert consumer.unsettled == {2: 8}
