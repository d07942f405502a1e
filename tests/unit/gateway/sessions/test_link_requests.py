"""Links that begin and end: what one waits for keeps no other of its session waiting (AMQP 1.0, section 2.6)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.common.errors import BrokerError, NotFound, ResourceError
from services.common.runtime import Tasks
from services.gateway import vocabulary as v
from services.gateway.outcomes import ACCEPTED
from services.gateway.sessions.session import Session


class House:
    """A session whose requests are done when a test says so; what is done at once is written down with them."""

    def __init__(self) -> None:
        self.begun: list[v.Request] = []
        self.done: list[v.Request] = []
        self.failed: list[BrokerError] = []
        self.held = False
        self._ends: dict[int, asyncio.Future[None]] = {}
        self.connection = SimpleNamespace(
            broker=SimpleNamespace(sessions={}), tasks=Tasks(), waiting=0, lost=False, parting=False,
            carry_out=self._carry_out, engine=SimpleNamespace(succeed=lambda request, _: self.done.append(request)),
            fail=lambda _, error: self.failed.append(error), take_pending=lambda: None, flush=lambda: None,
            hold=lambda _: self._hold(held=True), release=lambda _: self._hold(held=False),
        )  # fmt: skip
        self.session = Session(1, cast("Any", self.connection))

    def _hold(self, *, held: bool) -> None:
        self.held = held

    def _carry_out(self, session: Session, request: v.Request) -> Coroutine[Any, Any, None] | None:
        self.begun.append(request)
        if isinstance(request, v.CloseSession):
            session.close()
        if isinstance(request, v.CloseSession | v.Credit | v.Settle):
            return None
        end = self._ends[id(request)] = asyncio.get_running_loop().create_future()
        return self._wait(end)

    async def _wait(self, end: asyncio.Future[None]) -> None:
        await end

    async def asks(self, *requests: v.Request) -> None:
        for request in requests:
            self.session.handle(request)
        await asyncio.sleep(0.001)

    async def ends(self, request: v.Request, error: BrokerError | None = None) -> None:
        end = self._ends[id(request)]
        end.set_exception(error) if error else end.set_result(None)
        await asyncio.sleep(0.001)


@pytest.fixture
async def house() -> House:
    return House()


def find(link: int) -> v.FindNode:
    return v.FindNode(1, [("q", v.Node.QUEUE)], link=link)


def cancel(link: int) -> v.Cancel:
    return v.Cancel(1, "t", link=link)


async def test_links_beside_each_other(house: House) -> None:
    """A link whose node is looked for keeps neither another link waiting, nor credit and settlements."""
    first, second, credit, settle = find(1), find(2), v.Credit(1, "t", 1, link=3), v.Settle(1, 1, 1, ACCEPTED)
    await house.asks(first, second, credit, settle)
    assert set(map(id, house.begun)) == set(map(id, (first, second, credit, settle)))
    await house.ends(second)
    assert house.done == [second]
    await house.ends(first)
    assert house.done == [second, first]


async def test_a_queue_without_an_owner(house: House) -> None:
    """A link that deletes its own waits for the owner, for half a minute: the session's requests go on."""
    delete, publish = v.DeleteQueue(1, "q", link=1), v.Publish(1, [], [], [], link=2)
    await house.asks(delete, publish)
    assert house.begun == [delete, publish]
    await house.ends(delete)


async def test_one_link_in_order(house: House) -> None:
    """What is asked of a link waits for what was asked of it before."""
    first, second = find(1), cancel(1)
    await house.asks(first, second)
    assert house.begun == [first]
    await house.ends(first)
    assert house.begun == [first, second]


async def test_behind_what_was_asked_before(house: House) -> None:
    """The end of a link does not overtake a publish of the session, and is not waited for by the next one."""
    publish, end, following = (
        v.Publish(1, [], [], [], link=2), cancel(1), v.Publish(1, [], [], [], link=2),
    )  # fmt: skip
    await house.asks(publish, end, following)
    assert house.begun == [publish]
    await house.ends(publish)
    assert house.begun == [publish, end, following]


async def test_a_link_fails(house: House) -> None:
    """What waits behind it is dropped, the others go on."""
    first, behind, other = find(1), cancel(1), find(2)
    await house.asks(first, behind, other)
    await house.ends(first, NotFound("no"))
    assert [type(error) for error in house.failed] == [NotFound]
    await house.ends(other)
    assert (house.begun, house.done) == ([first, other], [other])
    await house.asks(cancel(1))
    assert len(house.begun) == 3


async def test_the_session_ends(house: House) -> None:
    """When all of its links' requests are done; then it holds nothing."""
    requests = find(1), find(2), v.CloseSession(1)
    await house.asks(*requests)
    assert not house.session.closed
    waits = asyncio.create_task(house.session.idle())
    for request in requests[:2]:
        assert not waits.done()
        await house.ends(request)
    assert house.session.closed
    await waits
    assert house.connection.waiting == 0


async def test_the_session_fails(house: House) -> None:
    """Nothing that waits is done any more, of any link."""
    publish, first, behind = v.Publish(1, [], [], []), find(1), cancel(1)
    await house.asks(first, behind, publish)
    await house.ends(publish, ResourceError("no"))
    await house.ends(first)
    assert house.begun == [first, publish]


async def test_many_links_at_once(house: House) -> None:
    """What waits is bounded, though none waits for another: the connection is read no further."""
    requests = [find(link) for link in range(1, 100)]
    await house.asks(*requests)
    assert house.held
    for request in requests[:30]:
        await house.ends(request)
    assert house.held
    for request in requests[30:40]:
        await house.ends(request)
    assert not house.held
    for request in requests[40:]:
        await house.ends(request)
    assert house.connection.waiting == 0
