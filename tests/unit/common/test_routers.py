from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from services.common.clients.routers import Replaced, Router, Routers
from services.rpc.store_pb2 import Lease, LeaseTable, Member


async def test_a_channel_is_closed() -> None:
    """A call whose channel is closed under it is one to a former router; its caller is not cancelled."""
    routers = Routers(cast("Any", None), "test")
    writer = routers.writer = Router("router-1", "unix:nowhere")
    closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(closed.cancel)

    async def call() -> None:
        await closed

    with pytest.raises(Replaced):
        await routers.while_writing(writer, call())


class Compared(Router):
    """Counts how often it is compared."""

    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return super().__eq__(other)

    __hash__ = Router.__hash__


async def test_members_in_the_order_in_which_they_came() -> None:
    """Of two at one address the later one is there, whatever their names; who asks goes by names, as others do."""

    class Store:
        async def watch_leases(self, role: str) -> AsyncIterator[LeaseTable]:
            yield LeaseTable(members=[Member(member=name, role=role, address="r") for name in ("z", "a")])

    routers = Routers(cast("Any", Store()), "test")
    await routers._follow()
    assert list(routers.members()) == ["z", "a"]
    assert sorted(router.member for router in routers.evaluators()) == ["a", "z"]


async def test_many_changes_at_once() -> None:
    """Each of a thousand looks at the router that writes once, and at no other change."""
    routers = Routers(cast("Any", None), "test")
    writer = routers.writer = Compared("router-1", "unix:nowhere")
    answered = asyncio.Event()
    changes = [asyncio.create_task(routers.while_writing(writer, answered.wait())) for _ in range(1000)]
    await asyncio.sleep(0)
    assert Compared.times == len(changes)
    answered.set()
    assert all(await asyncio.gather(*changes))


async def test_another_router_writes_before_the_call() -> None:
    """A change that is asked of a former router ends at once."""
    routers = Routers(cast("Any", None), "test")
    routers.writer = Router("router-2", "unix:nowhere")
    with pytest.raises(Replaced):
        await routers.while_writing(Router("router-1", "unix:nowhere"), asyncio.Event().wait())


async def test_an_answer_that_comes_with_the_news_of_another_router() -> None:
    """It is given, or the call is said to be replaced; the task that asked goes on either way."""
    routers = Routers(cast("Any", None), "test")
    writer = routers.writer = Router("router-1", "unix:nowhere")
    answered = asyncio.Event()

    async def call() -> str:
        try:
            await answered.wait()
        except asyncio.CancelledError:
            return "an answer all the same"
        return "an answer"

    asking = asyncio.create_task(routers.while_writing(writer, call()))
    await asyncio.sleep(0)
    routers.writer = Router("router-2", "unix:nowhere")
    [waits] = routers._for_writer
    waits.cancel()
    assert await asking == "an answer all the same"
    assert asking.cancelling() == 0


async def test_another_router_writes_meanwhile() -> None:
    """Who waits for the former one hears that, and goes on: its task was not asked to end."""
    routers = Routers(cast("Any", _Leases()), "test")
    writer = routers.writer = Router("router-1", "unix:nowhere")
    routers.start()

    async def change() -> int:
        with pytest.raises(Replaced):
            await routers.while_writing(writer, asyncio.Event().wait())
        return cast("asyncio.Task[Any]", asyncio.current_task()).cancelling()

    changes = [asyncio.create_task(change()) for _ in range(3)]
    assert await asyncio.wait_for(asyncio.gather(*changes), 5) == [0, 0, 0]
    await routers.stop()


async def test_who_waits_is_cancelled() -> None:
    """Also in the same moment as another router writes: it ends as cancelled."""
    routers = Routers(cast("Any", _Leases()), "test")
    writer = routers.writer = Router("router-1", "unix:nowhere")
    changes = [asyncio.create_task(routers.while_writing(writer, asyncio.Event().wait())) for _ in range(2)]
    await asyncio.sleep(0)
    changes[0].cancel()
    routers.start()
    while routers.writer == writer:
        await asyncio.sleep(0)
    changes[1].cancel()
    await asyncio.wait(changes)
    assert [change.cancelled() for change in changes] == [True, True]
    await routers.stop()


class _Leases:
    """Says once that another router writes."""

    async def watch_leases(self, _role: str) -> AsyncIterator[LeaseTable]:
        yield LeaseTable(leases=[Lease(name="router", epoch=2, member="router-2", address="unix:nowhere")])
        await asyncio.Event().wait()
