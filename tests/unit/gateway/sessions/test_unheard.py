"""Deliveries that come when nobody is there to hear of them, though the session is not closed yet."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.common.runtime import Tasks
from services.gateway import vocabulary as v
from services.gateway.connections.connection import Connection
from services.rpc.queue_pb2 import RESTORE
from tests.unit.gateway.sessions.test_credit_taken_back import House


@pytest.fixture
def house(request: pytest.FixtureRequest) -> House:
    house = House(settled=request.param)
    house.take(10)
    return house


async def _never(*_: object) -> None:
    await asyncio.Event().wait()


def _is_lost(house: House) -> None:
    cast("Any", house.session.connection).lost = True


def _has_close_behind_a_request(house: House) -> None:
    """The engine has closed it, or its client has, while a declare waits."""
    house.session._busy = True
    house.session.handle(v.CloseSession(1))


@pytest.mark.parametrize("becomes", [_is_lost, _has_close_behind_a_request])
@pytest.mark.parametrize("house", [False], indirect=True)
def test_to_be_settled(becomes: Any, house: House) -> None:
    """They go back at once, and were never sent."""
    becomes(house)
    house.arrive(b"a", b"b")
    assert (house.sent, len(house.session.numbers), house.settled) == ([], 0, [(RESTORE, [1, 2])])


@pytest.mark.parametrize("becomes", [_is_lost, _has_close_behind_a_request])
@pytest.mark.parametrize("house", [True], indirect=True)
def test_settled(becomes: Any, house: House) -> None:
    """The record does not say that they were sent, and their owner is given no room for more."""
    becomes(house)
    house.arrive(b"a", b"b")
    house.session.end(house.consumer)
    assert (house.sent, cast("Any", house.consumer.credit).sent, house.consumer.due_room) == ([], 0, 0)
    assert not cast("Any", house.session.broker).observer.sent.called


@pytest.mark.parametrize("house", [False], indirect=True)
def test_what_waits_for_the_socket(house: House) -> None:
    """Is not written behind the end of its session."""
    cast("Any", house.session.connection).writable = False
    house.arrive(b"a")
    _has_close_behind_a_request(house)
    cast("Any", house.session.connection).writable = True
    assert not house.session.write_parked()
    house.session.close()
    assert (house.sent, house.settled) == ([], [(RESTORE, [1])])


@pytest.mark.parametrize("house", [False], indirect=True)
async def test_a_busy_session_beside_it(house: House) -> None:
    """A channel that waits for its queue keeps nothing of what the others of a lost connection hold."""
    busy = House(settled=False).session
    busy._busy, busy._work = True, asyncio.create_task(_never())
    connection: Any = SimpleNamespace(sessions={1: busy, 2: house.session}, owns_queues=False)
    ending = asyncio.create_task(Connection.end_sessions(connection))
    await asyncio.sleep(0.01)
    assert (busy.closed, house.session.closed) == (False, True)
    busy._work.cancel()
    await ending
    assert busy.closed


@pytest.mark.parametrize("lost", [True, False])
@pytest.mark.parametrize("house", [False], indirect=True)
async def test_questions(house: House, lost: bool) -> None:
    """What a client that is gone asked last is not looked for: a thousand such clients would have others wait for it.

    What it wanted done is done, with what it asked before: a name may be missing in it, and mean the queue asked for.
    """
    connection, release = cast("Any", house.session.connection), asyncio.Event()
    asked = [v.DeclareQueue(1, "q", passive=True), v.Bind(1, "x", "", False, "k"), v.Get(1, "q")]
    asked += [v.DeclareQueue(1, "q", passive=True), v.DeclareExchange(1, "x", "", passive=True)]
    done: list[v.Request] = []
    connection.carry_out = lambda _session, request: done.append(request)
    connection.tasks, connection.engine.succeed = Tasks(), lambda *_: None
    connection.flush = connection.take_pending = lambda: None
    connection.release = connection.hold = lambda _session: None
    house.session.begin(v.Commit(1), release.wait())
    for request in asked:
        house.session.handle(request)
    connection.lost = lost
    ended = asyncio.ensure_future(house.session.ended())
    await asyncio.sleep(0)
    release.set()
    await ended
    assert done == (asked[:2] if lost else asked)
    assert connection.waiting == 0
