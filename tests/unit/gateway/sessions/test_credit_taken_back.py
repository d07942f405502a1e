"""Deliveries that were on their way when a client took credit back (AMQP 1.0, section 2.6.7)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import Mock

import pytest

from services.common.message.facts import Facts
from services.gateway import vocabulary as v
from services.gateway.operations import carry_out, consume, settle
from services.gateway.outcomes import UNSENT
from services.gateway.sessions.backlog import Arrived
from services.gateway.sessions.consumer import Consumer, ConsumerState
from services.gateway.sessions.credit import LinkCredit
from services.gateway.sessions.session import Session
from services.rpc.queue_pb2 import RESTORE

if TYPE_CHECKING:
    from services.gateway.answers import Deliveries


class House:
    """A session whose client is written what is delivered, and whose owners are told what is settled."""

    def __init__(self, *, settled: bool) -> None:
        self.sent: list[bytes] = []
        self.settled: list[tuple[int, list[int]]] = []
        off = SimpleNamespace(on=False, open=False)
        broker = SimpleNamespace(
            sessions={}, observer=Mock(),
            settle=lambda _queue, outcome, uids, *_change: self.settled.append((outcome, list(uids))),
        )  # fmt: skip
        connection = SimpleNamespace(
            broker=broker, record=off, writable=True, parting=False, lost=False, name="1.1", waiting=0,
            engine=SimpleNamespace(deliver=self._deliver), wrote=lambda _: None, wants_to_write=lambda _: None,
        )  # fmt: skip
        self.session = Session(1, cast("Any", connection))
        self.consumer = Consumer(
            handle=1, session=self.session, tag="t", queue_id=1, settled=settled, exclusive=False, browse=False,
            priority=0, credit=LinkCredit(), window=1 << 20, place=cast("Any", None), state=ConsumerState.ATTACHED,
            link=cast("Any", SimpleNamespace(credit=lambda *_, **__: None)), started=True,
        )  # fmt: skip

    def _deliver(self, _session: int, deliveries: Deliveries) -> None:
        self.sent += deliveries.bodies

    def arrive(self, *bodies: bytes) -> None:
        count = len(bodies)
        facts = [cast("Facts", None)] * count
        self.session.deliver(
            self.consumer, Arrived(False, range(1, count + 1), facts, [b""] * count, bodies, sum(map(len, bodies)))
        )

    def take(self, up_to: int) -> None:
        self.consumer.give(v.Credit(1, "t", up_to))
        while self.session.write_parked():
            pass


@pytest.fixture
def house(request: pytest.FixtureRequest) -> House:
    return House(settled=request.param)


@pytest.mark.parametrize("house", [False], indirect=True)
def test_to_be_settled(house: House) -> None:
    """They go back, for others to have."""
    house.take(4)
    house.take(1)
    house.arrive(b"a", b"b", b"c")
    assert (house.sent, house.settled) == ([b"a"], [(RESTORE, [2, 3])])


@pytest.mark.parametrize("house", [False], indirect=True)
def test_what_came_later_waits_for_the_socket(house: House) -> None:
    """It goes back with what goes back before it: when there is credit again, it would overtake that."""
    house.take(4)
    cast("Any", house.session.connection).writable = False
    house.arrive(b"a", b"b")
    house.arrive(b"c")
    house.consumer.give(v.Credit(1, "t", 1))
    assert house.session.write_parked()
    house.take(4)
    assert (house.sent, house.settled) == ([b"a"], [(RESTORE, [2]), (RESTORE, [1])])


@pytest.mark.parametrize("house", [False], indirect=True)
def test_what_waits_for_the_socket_when_the_owner_has_stopped(house: House) -> None:
    """What was beyond the credit then goes back before there is more: it was sent behind what went back before."""
    connection, house.consumer.stops = cast("Any", house.session.connection), True
    house.take(5)
    house.consumer.grant()
    house.take(1)
    house.arrive(b"a", b"b", b"c")
    connection.writable = False
    house.arrive(b"d", b"e")
    house.consumer.give(v.Credit(1, "t", 9))
    house.consumer.stopped(0)
    connection.writable = True
    assert not house.session.write_parked()
    assert (house.sent, house.settled) == ([b"a"], [(RESTORE, [2, 3]), (RESTORE, [1, 2])])


@pytest.mark.parametrize("house", [True], indirect=True)
def test_settled(house: House) -> None:
    """They would be lost: they wait for credit, and keep their order."""
    house.take(4)
    house.take(1)
    house.arrive(b"a", b"b", b"c")
    house.arrive(b"d")
    assert (house.sent, house.settled) == ([b"a"], [])
    house.take(3)
    assert house.sent == [b"a", b"b", b"c"]
    house.take(9)
    assert (house.sent, house.settled) == ([b"a", b"b", b"c", b"d"], [])


@pytest.mark.parametrize("house", [True], indirect=True)
def test_a_drain_with_less_credit_than_came(house: House) -> None:
    """It is answered here: what is held has used up the owner's room for bytes, so that it would never answer."""
    answered: list[v.Request] = []
    house.session.answer = answered.append  # type: ignore[method-assign]
    house.session.consumers["t"] = house.consumer
    house.take(4)
    house.take(1)
    house.arrive(b"a", b"b", b"c")
    drain = v.Credit(1, "t", 1, True)
    consume.credit(house.session, drain)
    assert (answered, house.consumer.drain) == ([drain], None)


@pytest.mark.parametrize("house", [False], indirect=True)
def test_what_the_engine_has_not_sent(house: House) -> None:
    """It uses no credit: all that is given later is granted, and it goes back as it was."""
    house.take(5)
    house.consumer.due = 0  # granted
    house.arrive(b"a", b"b", b"c", b"d", b"e")
    settle.settle(house.session, v.Settle(1, 3, 5, UNSENT))
    house.take(2)
    assert (house.settled, cast("Any", house.consumer.credit).sent) == ([(RESTORE, [3, 4, 5])], 2)
    house.take(12)
    assert house.consumer.due == 10


@pytest.mark.parametrize("house", [False], indirect=True)
def test_an_engine_that_has_no_room(house: House) -> None:
    """It is not kept waiting with its word by a request of the session: its owner was given room for more meanwhile."""
    connection = cast("Any", house.session.connection)
    connection.carry_out = carry_out
    house.session._busy = True
    house.session.handle(v.Room(1, False))
    house.take(5)
    house.arrive(b"a")
    assert (house.sent, house.consumer.due_room) == ([], 0)
    house.session.handle(v.Room(1, True))
    assert house.session.write_parked()
    assert house.sent == [b"a"]


@pytest.mark.parametrize("house", [True], indirect=True)
def test_a_drain_of_a_consumer_that_ends(house: House) -> None:
    """It is answered, as any that comes when there is no such consumer: an engine keeps what it waits for."""
    answered: list[v.Request] = []
    house.session.answer = answered.append  # type: ignore[method-assign]
    house.session.consumers["t"] = house.consumer
    first, late = v.Credit(1, "t", 4, True), v.Credit(1, "t", 5, True)
    consume.credit(house.session, first)
    assert answered == []
    house.session.end(house.consumer)
    consume.credit(house.session, late)
    assert answered == [first, late]
