"""What clients have settled of queues whose owner is another one by then."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock, call

import pytest
from structlog.testing import capture_logs

from services.common.clients.change import UNCHANGED, Change
from services.common.clients.link_frame import Settlement
from services.common.topology.slots import SlotId
from services.gateway.owners import ownerless as ownerless_queues
from services.gateway.owners.ownerless import OwnerlessQueues, Term
from services.gateway.sessions.broker import Broker
from services.gateway.sessions.consumer import Consumer, ConsumerState, GetHolder
from services.gateway.sessions.coordinator import Coordinator
from services.gateway.sessions.transaction import PendingSettlement
from services.rpc import queue_pb2 as pb

QUEUE, EPOCH = 1, 7


def ownerless_of(link: object, *sessions: Any) -> OwnerlessQueues:
    """One queue, whose owner is behind `link`."""
    owners = [(0, EPOCH, link)] if link else []
    publisher = SimpleNamespace(
        link_of=lambda _: link,
        owner_of=lambda _: (link, EPOCH),
        owners=lambda: iter(owners),
        unpark_soon=Mock(),
    )
    queues = {QUEUE: SimpleNamespace(partition=0, auto_delete=False)}
    return OwnerlessQueues(cast("Any", publisher), cast("Any", queues), sessions, lambda: 1, Mock(), lambda _: None)


@pytest.mark.parametrize(("outcome", "told"), [(pb.ACCEPT, True), (pb.REJECT, True), (pb.RELEASE, False)])
async def test_what_was_committed_before_the_next_owner_was_asked(outcome: pb.Outcome.ValueType, *, told: bool) -> None:
    """It is told the next owner with what is held; what was given back is held by no consumer there anyway."""
    ownerless = ownerless_of(None)
    ownerless.settle_elsewhere([PendingSettlement(1, GetHolder(QUEUE), 5, outcome)], {QUEUE: Term(Mock(), EPOCH)})
    assert (ownerless._ownerless[QUEUE].kept == [Settlement(SlotId(QUEUE), outcome, [5])]) is told


@pytest.mark.parametrize("told", [EPOCH - 1, EPOCH])
async def test_what_was_committed_when_the_same_process_had_it_again(told: int) -> None:
    """A process that has lost a queue and has it again was told what is held: it hears what became of that."""
    link = Mock(streams=1)
    ownerless, settled = ownerless_of(link), PendingSettlement(1, GetHolder(QUEUE, link), 5, pb.RELEASE)
    ownerless.settle_elsewhere([settled], {QUEUE: Term(link, told, 1)})
    assert link.settle.mock_calls == (
        [call(QUEUE, pb.RELEASE, [5], term=EPOCH, change=UNCHANGED)] if told != EPOCH else []
    )


@pytest.mark.parametrize("holders", [1, 2])
async def test_what_was_given_back_while_a_stream_broke(holders: int) -> None:
    """The owner was told again that it is held: it hears that it is not, unless a consumer here got it meanwhile."""
    link = Mock(streams=2)
    settled = PendingSettlement(1, GetHolder(QUEUE, link), 5, pb.RELEASE)
    session = Mock(holdings=lambda: iter([(settled.holder, 5)] * holders))
    ownerless_of(link, session).settle_elsewhere([settled], {QUEUE: Term(link, EPOCH, 1)})
    assert link.settle.called is (holders == 1)


async def test_what_a_consumer_holds_that_is_cancelled_as_its_owner_goes() -> None:
    """The next owner is told of it before it hears that it was told all; the consumer is not attached again."""
    session, link = Mock(), Mock()
    consumer = Consumer(
        7, session, "a", QUEUE, False, False, False, 0, Mock(), 1000, Mock(), ConsumerState.ATTACHED, Mock()
    )
    consumer.ended = asyncio.get_running_loop().create_future()
    session.holdings.side_effect = lambda: iter([(consumer, 5)])
    broker = cast("Any", Broker.__new__(Broker))
    broker._ownerless = ownerless = ownerless_of(link, session)
    broker._lose_owner(consumer)
    assert consumer.ended.done()
    ownerless._look()
    (asked,), _ = link.attach.call_args
    assert (list(asked.held), asked.stray) == ([5], True)
    ownerless.answered(asked.consumer, agreed=True)
    assert [name for name, *_ in link.mock_calls] == ["attach", "told"]
    assert not cast("Mock", ownerless._attach).mock_calls


async def test_a_consumer_that_cannot_be_attached_again() -> None:
    """It ends, and what it holds is claimed; the others of its queue are served."""
    bad, good = (Mock(queue_id=QUEUE, handle=handle, link=None) for handle in (7, 8))
    session, link, attached = Mock(), Mock(), []
    session.holdings.side_effect = lambda: iter([(bad, 5), (good, 6)])

    def attach(consumer: Any, _link: Any, held: list[int], *, again: bool) -> None:
        if consumer is bad:
            raise ValueError("more credit than can be said")
        attached.append((consumer, held, again))

    ownerless = ownerless_of(link, session)
    end = Mock()
    ownerless._attach, ownerless._end = cast("Any", attach), end
    ownerless.add(bad)
    ownerless.add(good)
    ownerless._look()
    assert attached == [(good, [6], True)]
    assert end.mock_calls == [call(bad)]
    (asked,), _ = link.attach.call_args
    assert (list(asked.held), asked.stray) == ([5], True)
    ownerless.answered(asked.consumer, agreed=True)
    ownerless.answered(good.handle, agreed=True)
    assert QUEUE not in ownerless._ownerless


@pytest.mark.parametrize("first", [True, False])
async def test_a_claim_that_is_refused(*, first: bool) -> None:
    """All of it is claimed again, whatever is said of other claims before or after that."""
    link, handles = Mock(), iter(range(1, 10))
    ownerless = ownerless_of(link)
    ownerless._new_handle = lambda: next(handles)
    ownerless.settle_elsewhere([PendingSettlement(1, GetHolder(QUEUE), 5, pb.ACCEPT)], {})
    ownerless._ownerless[QUEUE].kept.append(Settlement(SlotId(QUEUE), pb.ACCEPT, range(6, 60_000)))
    ownerless._look()
    one, other = (each.args[0].consumer for each in link.attach.mock_calls)
    ownerless.answered(one, agreed=first)
    ownerless.answered(other, agreed=not first)
    assert not link.settle.mock_calls
    ownerless._look()
    again = [each.args[0].consumer for each in link.attach.mock_calls[2:]]
    for handle in again:
        ownerless.answered(handle, agreed=True)
    assert [list(each.args[2])[:1] for each in link.settle.mock_calls] == [[5], [6]]


async def test_annotations_that_a_former_owner_may_not_have_heard() -> None:
    """What is given back with annotations is said again, of what no consumer here holds; without it is not."""
    link, session = Mock(), Mock()
    session.holdings.side_effect = lambda: iter([(GetHolder(QUEUE), 6)])
    ownerless, change = ownerless_of(link, session), Change(b"annotations")
    ownerless.give_back(
        [Settlement(SlotId(QUEUE), pb.RELEASE, [4]), Settlement(SlotId(QUEUE), pb.RELEASE, [5, 6], change)]
    )
    ownerless._look()
    (asked,), _ = link.attach.call_args
    assert list(asked.held) == [5, 6]  # the other one, as its holder
    ownerless.answered(asked.consumer, agreed=True)
    # The former owner may have counted the attempt.
    assert link.settle.mock_calls == [call(QUEUE, pb.RETURN, [5], term=EPOCH, change=change)]


async def test_what_was_requeued_when_its_owner_died() -> None:
    """It may be published again: the next owner hears that it was tried, right behind the claim for it, unless a
    consumer here has it. What was never tried is not said.
    """
    link, session = Mock(), Mock()
    session.holdings.side_effect = lambda: iter([(GetHolder(QUEUE), 6)])
    ownerless = ownerless_of(link, session)
    given_back = [(pb.RELEASE, [5, 6]), (pb.RESTORE, [7]), (pb.RETURN, [8]), (pb.ABANDON, [9]), (pb.RELEASE, [5])]
    ownerless.give_back([Settlement(SlotId(QUEUE), *each) for each in given_back], lost=True)
    ownerless._look()
    (asked,), _ = link.attach.call_args
    assert list(asked.held) == [5, 6]  # the other one, as its holder
    assert link.settle.mock_calls == [call(QUEUE, pb.TRIED, [5], term=EPOCH, change=UNCHANGED)]
    ownerless.answered(asked.consumer, agreed=True)
    assert link.settle.call_count == 1


async def test_what_was_requeued_and_accepted_then() -> None:
    """It is only accepted."""
    ownerless = ownerless_of(None)
    said = [Settlement(SlotId(QUEUE), pb.RELEASE, [5]), Settlement(SlotId(QUEUE), pb.ACCEPT, [5])]
    ownerless.give_back(said, lost=True)
    assert ownerless._ownerless[QUEUE].kept == said[1:]


async def test_the_last_word_on_a_message() -> None:
    """What came back with annotations and was accepted then is only accepted: no other consumer is given it."""
    link, ownerless, change = Mock(), ownerless_of(None), Change(b"annotations")
    said = [(pb.RELEASE, [5, 6, 7], change), (pb.RELEASE, [6], Change(b"others")), (pb.ACCEPT, [5], UNCHANGED)]
    ownerless.give_back([Settlement(SlotId(QUEUE), *each) for each in said])
    expected = [
        Settlement(SlotId(QUEUE), pb.RETURN, [7], change),
        Settlement(SlotId(QUEUE), pb.RETURN, [6], said[1][2]),
    ]
    assert ownerless._ownerless[QUEUE].kept == [*expected, Settlement(SlotId(QUEUE), pb.ACCEPT, [5])]
    ownerless.give_back([Settlement(SlotId(QUEUE), pb.RELEASE, [5, 6, 7], change)])
    assert len(ownerless._ownerless[QUEUE].kept) == 3
    assert not link.mock_calls


async def test_an_owner_dies_that_was_told_of_a_commit_last() -> None:
    """The link's settlements and those of transactions are one story: what was accepted in one is only accepted."""
    broker, link = cast("Any", Broker.__new__(Broker)), Mock()
    broker._ownerless, broker._consumers = ownerless_of(None), {}
    link.take_unsettled.return_value = [Settlement(SlotId(QUEUE), pb.RELEASE, [5], Change(b"annotations"))]
    accepted = Settlement(SlotId(QUEUE), pb.ACCEPT, [5])
    broker.transactions = Mock(take_unsettled=lambda *_: [accepted])
    broker._owner_gone(link, lambda _: True)
    assert broker._ownerless._ownerless[QUEUE].kept == [accepted]


@pytest.mark.parametrize("holders", [1, 2])
async def test_annotations_of_what_was_committed(holders: int) -> None:
    """Its own transaction, which is under way, does not count as another consumer; it is looked at once for all."""
    change, holder = Change(b"annotations"), GetHolder(QUEUE)
    looked = []

    def holdings() -> Iterator[tuple[GetHolder, int]]:
        looked.append(1)
        return iter([(holder, uid) for uid in (5, 6)] * holders + [(GetHolder(2), 5)])

    ownerless = ownerless_of(None, Mock(holdings=holdings))
    settled = [PendingSettlement(1, holder, uid, pb.RELEASE, change) for uid in (5, 6)]
    ownerless.settle_elsewhere(settled, {QUEUE: Term(Mock(), EPOCH)})
    said = [Settlement(SlotId(QUEUE), pb.RETURN, [uid], change) for uid in (5, 6)]
    assert ownerless._ownerless[QUEUE].kept == (said if holders == 1 else [])
    assert len(looked) == 2


async def test_what_was_committed_is_said_again_once() -> None:
    """Its owner died before it had answered: what is kept of it then is not kept again as the commit ends."""
    change, holder = Change(b"annotations"), GetHolder(QUEUE)
    ownerless = ownerless_of(None, Mock(holdings=lambda: iter([(holder, 5), (holder, 6)])))
    ownerless.give_back([Settlement(SlotId(QUEUE), pb.RELEASE, [5], change)], committing=True)
    holder.link = Mock()
    settled = [PendingSettlement(1, holder, uid, pb.RELEASE, change) for uid in (5, 6)]
    ownerless.settle_elsewhere([*settled, PendingSettlement(1, holder, 7, pb.ACCEPT)], {QUEUE: Term(Mock(), EPOCH)})
    said = [(each.outcome, list(each.uids)) for each in ownerless._ownerless[QUEUE].kept]
    assert said == [(pb.RETURN, [5]), (pb.RELEASE, [6]), (pb.ACCEPT, [7])]


@pytest.mark.parametrize("committing", [True, False])
async def test_what_an_owner_could_not_carry_out(*, committing: bool) -> None:
    """Of a transaction under way it is settled by that, and held by nobody besides; all else somebody here holds."""
    holder, link, coordinator = GetHolder(QUEUE), Mock(), cast("Any", Coordinator.__new__(Coordinator))
    coordinator._asked = {(9, link): Mock()} if committing else {}
    coordinator._ownerless = ownerless = ownerless_of(None, Mock(holdings=lambda: iter([(holder, 5)])))
    said = pb.Settle(queue_id=QUEUE, outcome=pb.RELEASE, uids=[5], annotations=b"annotations", transaction=9)
    coordinator.unsettled(link, [said], {})
    kept = [(each.outcome, list(each.uids), each.change.annotations) for each in ownerless._ownerless[QUEUE].kept]
    assert kept == ([(pb.RETURN, [5], b"annotations")] if committing else [])


async def test_annotations_that_wait_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it deliveries are settled without; what was kept before makes room once it is said."""
    monkeypatch.setattr(ownerless_queues, "_ANNOTATIONS", 10)
    link = Mock()
    ownerless = ownerless_of(None)
    with capture_logs() as logged:
        for uid in (5, 6):
            ownerless.settle(SlotId(QUEUE), pb.RELEASE, [uid], Change(b"12345678", not_again=True))
        ownerless.settle(SlotId(QUEUE), pb.RELEASE, [7], Change(b"12345678"))
    assert [each["log_level"] for each in logged] == ["warning"]
    assert ownerless._annotations == 8
    monkeypatch.setattr(ownerless._publisher, "link_of", lambda _: link)
    ownerless._look()
    (asked,), _ = link.attach.call_args
    ownerless.answered(asked.consumer, agreed=True)
    said = [each.kwargs["change"] for each in link.settle.mock_calls]
    assert said == [Change(b"12345678", not_again=True), Change(not_again=True), Change()]
    assert ownerless._annotations == 0
