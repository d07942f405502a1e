"""Links that outlive their connections: what clients know of them, and what the judge makes of it."""

from __future__ import annotations

import asyncio

import pytest

from services.gateway.protocols.amqp_1_0.performatives import SENDER, Attach, Detach, Error
from services.gateway.protocols.amqp_1_0.termini import Source
from tests.simulation.amqp_1_0.subscriptions import Subscriber, Subscription, queue_of
from tests.simulation.history import Asked, Consuming
from tests.simulation.line import GoneError
from tests.support.written_history import Written
from tests.unit.simulation.test_links import Broker

_STEP = {"tag": "s", "address": "/exchange/x/a", "exchange": "x", "key": "a"}
_STOLEN = Error("amqp:link:stolen", "")
GONE = "a closed link is gone"
ENDS = "a stolen link ends"
NOTHING = "a stolen link is given nothing"
LOST = "nothing promised is lost"
STAYS = "durable queues stay"
ROUTED = "nothing is delivered but where it was routed"


def _subscriber(broker: Broker, its: Subscription | None = None) -> Subscriber:
    session = broker.session
    its = its or Subscription(broker.history, "/", _STEP, session.opened)
    consuming = Consuming("/", queue_of("s"), "s", session.opened, no_ack=False, exclusive=False, asked=1)
    return Subscriber(session, its, consuming, lambda _receiver, _delivered: None, every=0)


def _attached(address: str = "/exchange/x/a") -> Attach:
    return Attach("s", 0, SENDER, source=Source(address, 2, "never"))


@pytest.fixture
def broker() -> Broker:
    """To which nothing has been said."""
    return Broker()


async def test_taken_up(broker: Broker) -> None:
    """Once it is attached it is certainly there; whoever takes it up may leave out what it is."""
    first = _subscriber(broker)
    assert not first.its.stands
    await broker.asked(first.attach(), _attached())
    assert first.its.stands
    assert broker.heard[-1].source == Source("/exchange/x/a", 2, "never")  # type: ignore[attr-defined]
    await broker.asked(first.part(), Detach(0, closed=False))
    again = _subscriber(broker, first.its)
    again.recalls = True
    await broker.asked(again.attach(), _attached())
    assert broker.heard[-1].source is None  # type: ignore[attr-defined]
    assert broker.history.breaches == []


@pytest.mark.parametrize("address", ["/exchange/x/b", None])
async def test_what_is_there_is_told(broker: Broker, address: str | None) -> None:
    """One that stands is not refused, nor said to be another."""
    first = _subscriber(broker)
    await broker.asked(first.attach(), _attached())
    await broker.asked(first.part(), Detach(0, closed=False))
    again = _subscriber(broker, first.its)
    if address:
        await broker.asked(again.attach(), _attached(address))
    else:
        error = Error("amqp:not-found", "")
        with pytest.raises(GoneError):
            await broker.asked(again.attach(), Attach("s", 0, SENDER, source=None), Detach(0, True, error))
    assert len(broker.history.breaches) == 1


async def test_closed(broker: Broker) -> None:
    """Closed by who has it, it is certainly gone with the answer."""
    its = _subscriber(broker)
    await broker.asked(its.attach(), _attached())
    await broker.asked(its.end(), Detach(0, True))
    assert its.its.ended is not None
    assert (its.its.ended.outcome, its.its.stands) == ("ok", False)


async def test_closed_by_who_had_it(broker: Broker) -> None:
    """Taken by another before, whose attach was answered, it stays that one's; with faults nobody knows."""
    for faults, outcome in (([], ""), ([object()], "lost")):
        broker.history.faults = faults  # type: ignore[assignment]
        its = _subscriber(broker)
        await broker.asked(its.attach(), _attached())
        its.its.latest = None
        await broker.asked(its.end(), Detach(0, True))
        assert (its.its.ended.outcome if its.its.ended else "") == outcome


async def test_stolen(broker: Broker) -> None:
    """Who hears of it was not cancelled for a fault; what it has said last may have been for nothing."""
    its = _subscriber(broker)
    await broker.asked(its.attach(), _attached())
    its.give(5)
    broker.delivers(0)
    broker.session.settle("ack", 0)
    broker.says(Detach(0, True, _STOLEN))
    [delivered] = broker.deliveries
    assert (its.consuming.stolen, its.consuming.cancelled_by_broker) == (True, False)
    assert delivered.settled == delivered.at
    broker.session.carried_out()
    assert delivered.known is None


async def test_attached_by_two_at_once(broker: Broker) -> None:
    """Nobody knows who had it last: its end is not certain."""
    first, other = _subscriber(broker), Broker()
    second = _subscriber(other, first.its)
    attaching = asyncio.create_task(first.attach())
    await asyncio.sleep(0)
    await other.asked(second.attach(), _attached())
    broker.says(_attached())
    await attaching
    await broker.asked(first.end(), Detach(0, True))
    assert first.its.ended is not None
    assert first.its.ended.outcome == "lost"


# ------------------------------------------------------------------ the judge


def _begins(told: Written) -> tuple[Asked, Asked]:
    """A subscription of x, by key a."""
    told.change("exchange", exchange="x", type="topic")
    made = told.change("subscribe", queue=queue_of("s"), durable=True)
    return made, told.change("bind_own", source="x", to=queue_of("s"), key="a", arguments={})


def _ends(told: Written, *, answered: bool = True) -> Asked:
    return told.change("unsubscribe", queue=queue_of("s"), answered=answered)


def test_lost(told: Written) -> None:
    """What was routed to it while nobody was there is not lost."""
    _begins(told)
    sent = told.publish("m", "a", exchange="x")
    assert told.broken() == {LOST}
    told.drain(sent, queue_of("s"))
    assert told.broken() == set()


def test_after_its_end(told: Written) -> None:
    """What is sent after its end is not for it; what was sent before may be gone with it."""
    _begins(told)
    told.publish("m", "a", exchange="x")
    _ends(told)
    late = told.publish("n", "a", exchange="x")
    assert told.broken() == set()
    told.deliver(late, queue_of("s"), "ack")
    assert told.broken() == {ROUTED}


@pytest.mark.parametrize(("answered", "broken"), [(True, {GONE}), (False, set())])
def test_there_in_the_end(told: Written, *, answered: bool, broken: set[str]) -> None:
    """Closed for certain, its queue is gone."""
    _begins(told)
    _ends(told, answered=answered)
    told.history.counts.append(("/", queue_of("s"), 0, 0, 0))
    assert told.broken() == broken


def test_not_there_in_the_end(told: Written) -> None:
    """Nobody has ended it: it stays."""
    _begins(told)
    told.history.counts.append(("/", queue_of("s"), -1, 0, 0))
    assert told.broken() == {STAYS}


def test_two_have_it(told: Written) -> None:
    """Whoever had it hears that another has, and is given nothing that comes later."""
    _begins(told)
    former, thief = told.consumer(queue_of("s")), told.consumer(queue_of("s"), told.one)
    late = told.publish("m", "a", exchange="x")
    told.deliver(late, queue_of("s"), "ack", consumer=former)
    told.time = 5.0
    former.ending = told.history.tick()
    assert told.broken() == {ENDS, NOTHING}
    assert thief.ending is None
    told.fault("kill", "queue-1")
    assert told.broken() == set()
