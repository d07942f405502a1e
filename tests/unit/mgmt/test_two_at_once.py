"""Two management processes that change the same: nothing that one of them was told of as done is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import pytest

from services.common import limits
from services.common.access import records as kept
from services.common.access.records import Permission
from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.common.errors import PreconditionFailed, Unavailable
from services.common.limits import Subject
from services.common.users import User
from services.mgmt.access.grants import Grants
from services.mgmt.users import Users
from services.rpc.store_pb2 import PutRecordsRequest, Record
from tests.support.fake_store import FakeStore

SHOP = Subject(limits.VIRTUAL_HOST, "shop")


class Process(NamedTuple):
    """What one of them changes things by."""

    users: Users
    grants: Grants


@pytest.fixture
async def two(settings: Settings, store: FakeStore) -> AsyncIterator[tuple[Process, Process]]:
    clients = [StoreClient(settings.address_of("store")) for _ in range(2)]
    one, other = (Process(Users(client, mechanisms=()), Grants(client)) for client in clients)
    store.put([Record(kind=kept.VIRTUAL_HOST, key="shop", value=b'{"id": 1}')])
    yield one, other
    for client in clients:
        await client.close()


def _once(store: FakeStore, kind: str, act: Callable[[], None]) -> None:
    """Before the next put of such a record another process acts."""

    def before(request: PutRecordsRequest) -> None:
        if any(record.kind == kind for record in (*request.puts, *request.deletes)):
            store.before_put = lambda _: None
            act()

    store.before_put = before


async def test_members_of_a_group(two: tuple[Process, Process]) -> None:
    """Of twenty that both add at once each is in it, and those that are removed meanwhile are not."""
    one, other = (process.grants for process in two)
    await one.add_group("staff")
    await one.add_member("staff", "gone")
    names = [f"user-{number}" for number in range(20)]
    adding = ([one, other][number % 2].add_member("staff", name) for number, name in enumerate(names))
    await asyncio.gather(other.remove_member("staff", "gone"), *adding)
    [group] = (await one.all()).groups
    assert sorted(group.members) == sorted(names)


async def test_limits(two: tuple[Process, Process]) -> None:
    """One sets the one, the other the other: there are both."""
    one, other = (process.grants for process in two)
    await asyncio.gather(one.put_limits(SHOP, {"max-queues": 3}), other.put_limits(SHOP, {"max-connections": 4}))
    assert await one.limits(SHOP.kind) == {"shop": {"max-queues": 3, "max-connections": 4}}


async def test_tags_and_a_new_password(two: tuple[Process, Process], store: FakeStore) -> None:
    """One caller sets tags while another sets a password: the user has both."""
    one, other = (process.users for process in two)
    await one.put("anna", "first", (), loopback_only=False)
    await asyncio.gather(one.change("anna", password="second"), other.set_tags("anna", ["monitoring"]))
    anna = User.from_json(store.records["user", "anna"].value)
    assert anna.tags == ("monitoring",)


async def test_one_user_of_a_name(two: tuple[Process, Process]) -> None:
    """A caller who may only create users replaces none that another process has made meanwhile."""
    making = (process.users.put("anna", "p", (), loopback_only=False, there=False) for process in two)
    told = await asyncio.gather(*making, return_exceptions=True)
    assert sorted(type(each) for each in told if each) == [PreconditionFailed]


async def test_a_permission_in_a_virtual_host_that_was_made_anew(
    two: tuple[Process, Process], store: FakeStore
) -> None:
    """It stays, though another process is about to forget what was permitted in the former one, as it has read it."""
    one, _ = (process.grants for process in two)
    await one.put_permission(Permission(user="former", virtual_host="shop"))
    store.put([Record(kind=kept.VIRTUAL_HOST, key="shop", value=b'{"id": 2}')])
    new = Permission(user="new", virtual_host="shop", read=".*")

    def faster() -> None:
        filed = Record(kind=kept.FILED_FOR, key="shop", value=b'{"id": 2}')
        gone = Record(kind=kept.PERMISSION, key=kept.permission_key("former", "shop"))
        store.put([filed, Record(kind=kept.PERMISSION, key=new.key, value=new.to_json())], [gone])

    _once(store, kept.PERMISSION, faster)
    await one.forget_virtual_hosts()
    assert (await one.all()).permissions == [new]


async def test_another_writer_that_is_always_faster(two: tuple[Process, Process], store: FakeStore) -> None:
    """Is no reason to try for ever."""
    one, _ = (process.grants for process in two)
    await one.add_group("staff")
    store.before_put = lambda _: store.put([Record(kind=kept.GROUP, key="other", value=b'{"name": "other"}')])
    with pytest.raises(Unavailable, match="all the time"):
        await one.add_member("staff", "anna")
