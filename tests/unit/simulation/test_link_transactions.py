"""What clients of AMQP 1.0 make of their transactions, as histories tell it."""

from __future__ import annotations

import asyncio

import pytest

from services.common.message.amqp_1_0.composite import Composite
from services.gateway.protocols.amqp_1_0.performatives import (
    RECEIVER,
    Attach,
    Detach,
    Disposition,
    Error,
    Flow,
    Transfer,
)
from services.gateway.protocols.amqp_1_0.states import Accepted, Modified, Rejected
from services.gateway.protocols.amqp_1_0.transactional import Coordinator, Declared, TransactionalState
from tests.simulation.amqp_1_0.transactions import Local
from tests.simulation.line import GoneError
from tests.unit.simulation.test_links import Broker, sent

_ROLLED_BACK = Rejected(Error("amqp:transaction:rollback", "a queue is full"))


async def declared(broker: Broker) -> Local:
    """A transaction, by a coordinator whose handle there is 7."""
    doing = asyncio.create_task(broker.session.transaction("x"))
    await asyncio.sleep(0)
    broker.says(Attach("coordinator", 7, RECEIVER, target=Coordinator()), Flow(0, 100, 0, 100, 7, 0, 50))
    await answered(broker, Declared(b"1"))
    return await doing


async def answered(broker: Broker, state: Composite) -> None:
    """The last that was sent has that outcome."""
    for _ in range(3):
        await asyncio.sleep(0)
    numbers = [each.delivery_id for each in broker.heard if isinstance(each, Transfer) and each.delivery_id is not None]
    broker.says(Disposition(RECEIVER, numbers[-1], settled=True, state=state))


async def discharged(broker: Broker, local: Local, state: Composite, *, fail: bool = False) -> None:
    """It is over."""
    doing = asyncio.create_task(local.discharge(fail=fail))
    await answered(broker, state)
    await doing


async def test_posted() -> None:
    """What is posted says of which it is part; that it is accepted confirms nothing before it is committed."""
    broker = Broker()
    sender, message = await broker.sender(9), sent("a")
    local = await declared(broker)
    await sender.send(message, settled=False, part_of=local)
    assert broker.heard[-1].state == TransactionalState(b"1")  # type: ignore[attr-defined]
    await answered(broker, TransactionalState(b"1", Accepted()))
    assert (message.confirmed, message.transaction) == (None, local.its)
    await discharged(broker, local, Accepted())
    assert (local.its.outcome, broker.history.breaches) == ("committed", [])


async def test_committed_though_a_part_was_refused() -> None:
    """Section 4.3: it would not be whole."""
    broker = Broker()
    sender, local = await broker.sender(9), await declared(broker)
    await sender.send(sent("a"), settled=False, part_of=local)
    await answered(broker, TransactionalState(b"1", Rejected()))
    await discharged(broker, local, Accepted())
    assert len(broker.history.breaches) == 1


@pytest.mark.parametrize("second", [False, True])
async def test_retired(*, second: bool) -> None:
    """What is said of a delivery is known once it is committed."""
    broker = Broker(second=second)
    await broker.receiver(5)
    broker.delivers(0)
    local = await declared(broker)
    broker.session.settle("requeue", 0, part_of=local)
    said = TransactionalState(b"1", Modified(delivery_failed=True))
    assert broker.heard[-1] == Disposition(RECEIVER, 0, 0, settled=not second, state=said)
    [delivered] = broker.deliveries
    assert (delivered.transaction, delivered.known) == (local.its, None)
    await discharged(broker, local, Accepted())
    assert (delivered.known, local.its.settled) == (local.its.answered, [delivered])


@pytest.mark.parametrize("fail", [False, True])
async def test_rolled_back(*, fail: bool) -> None:
    """What was settled is for others, an attempt, and nothing was said of it."""
    broker = Broker()
    await broker.receiver(5)
    broker.delivers(0)
    local = await declared(broker)
    broker.session.settle("modify", 0, part_of=local)
    await discharged(broker, local, Accepted() if fail else _ROLLED_BACK, fail=fail)
    [delivered] = broker.deliveries
    assert (delivered.settled_as, delivered.said, delivered.attempt) == ("requeue", "", True)
    assert (local.its.outcome, delivered.transaction, broker.session.unsettled) == ("rolled_back", None, {})


async def test_rolled_back_before_the_broker_has_settled() -> None:
    """Section 4.4.2: it is as it was before."""
    broker = Broker(second=True)
    await broker.receiver(5)
    broker.delivers(0, 1)
    local = await declared(broker)
    broker.session.settle("ack", 0, part_of=local)
    await discharged(broker, local, Accepted(), fail=True)
    assert (list(broker.session.unsettled), broker.deliveries[0].settled) == ([0, 1], None)


async def test_no_range_goes_over_what_is_retired() -> None:
    """It may be unsettled again, before its client knows that."""
    broker = Broker()
    await broker.receiver(5)
    broker.delivers(0, 1, 2)
    local = await declared(broker)
    broker.session.settle("ack", 1, part_of=local)
    broker.session.settle("ack", 2, multiple=True)
    assert [(each.first, each.last) for each in broker.heard[-2:]] == [(0, 0), (2, 2)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("asks", "outcome"), [(False, "rolled_back"), (True, "unknown")])
async def test_the_session_ends(*, asks: bool, outcome: str) -> None:
    """What was to be committed may have been."""
    broker = Broker()
    local = await declared(broker)
    if asks:
        del broker.session.transactions["x"]
        doing = asyncio.create_task(local.discharge(fail=False))
        await asyncio.sleep(0)
    broker.session.end(320, "gone")
    if asks:
        with pytest.raises(GoneError):
            await doing
    assert local.its.outcome == outcome


async def test_the_coordinator_ends() -> None:
    """With it goes what it has not discharged."""
    broker = Broker()
    local = await declared(broker)
    await broker.asked(local.coordinator.detach(), Detach(7, True))
    assert (local.its.outcome, broker.session.transactions) == ("rolled_back", {})
