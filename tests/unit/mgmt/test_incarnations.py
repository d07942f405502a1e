"""What is filed for a virtual host, when that is deleted and made again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from services.common.access import records
from services.common.access.records import FILED_FOR, VIRTUAL_HOST, AclText, Permission, TopicPermission
from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.common.errors import NotFound
from services.common.topology.definitions import Host
from services.common.topology.records import virtual_host_record
from services.mgmt.access.grants import Grants
from services.rpc.store_pb2 import Record
from tests.support.fake_store import FakeStore

FILED = (records.PERMISSION, records.TOPIC_PERMISSION, records.ACL)


def make(store: FakeStore, name: str, number: int) -> None:
    """As the router does; 0: as one without ids does."""
    value = virtual_host_record(Host(name, number)).value if number else json.dumps({"name": name}).encode()
    store.records[VIRTUAL_HOST, name] = Record(kind=VIRTUAL_HOST, key=name, value=value)


def filed(store: FakeStore, name: str) -> list[str]:
    """Kinds of what is."""
    keys = ((kind, json.loads(key)) for kind, key in store.records if kind in FILED)
    return [kind for kind, key in keys if (key[1] if isinstance(key, list) else key) == name]


async def file(grants: Grants, name: str) -> None:
    """One of each."""
    await grants.put_permission(Permission(user="anna", virtual_host=name))
    await grants.put_topic_permission(TopicPermission(user="anna", virtual_host=name, exchange="t"))
    await grants.put_acl(AclText(virtual_host=name, text="CONFIG DEFAULTDEFER=TRUE"))


@pytest.fixture
async def connected(settings: Settings, store: FakeStore) -> AsyncIterator[StoreClient]:
    client = StoreClient(settings.address_of("store"))
    yield client
    await client.close()


@pytest.fixture
def grants(connected: StoreClient, store: FakeStore) -> Grants:
    """With two virtual hosts that were there before mgmt noted anything."""
    make(store, "/", 0)
    make(store, "work", 7)
    return Grants(connected)


async def look(grants: Grants, connected: StoreClient) -> None:
    """As mgmt does when it starts."""
    following = asyncio.create_task(grants.follow_virtual_hosts(connected.watch_records([VIRTUAL_HOST])))
    await asyncio.sleep(0.1)
    following.cancel()


@pytest.mark.parametrize("before", [7, 0])
async def test_made_again_while_mgmt_was_away(
    grants: Grants, connected: StoreClient, store: FakeStore, before: int
) -> None:
    """What was filed for the former one is gone, of others it stays; also where the former one had no id."""
    make(store, "work", before)
    for name in ("work", "/"):
        await file(grants, name)
    await look(grants, connected)
    assert len(filed(store, "work")) == len(filed(store, "/")) == len(FILED)
    make(store, "work", 8)
    await look(grants, connected)
    assert filed(store, "work") == []
    assert len(filed(store, "/")) == len(FILED)


async def test_what_is_filed_for_the_next_one_stays(grants: Grants, connected: StoreClient, store: FakeStore) -> None:
    """Though it is filed before mgmt has seen that it is a new one; what was filed for the former is gone."""
    await file(grants, "work")
    make(store, "work", 8)
    await grants.put_permission(Permission(user="bob", virtual_host="work"))
    assert filed(store, "work") == [records.PERMISSION]
    await look(grants, connected)
    assert [Permission.from_json(each.value).user for each in await connected.list_records([records.PERMISSION])] == [
        "bob"
    ]


async def test_what_was_filed_before_anything_was_noted(
    grants: Grants, connected: StoreClient, store: FakeStore
) -> None:
    """Is of the one that is there."""
    await file(grants, "work")
    del store.records[FILED_FOR, "work"]
    await look(grants, connected)
    assert len(filed(store, "work")) == len(FILED)


async def test_a_router_without_ids(grants: Grants, connected: StoreClient, store: FakeStore) -> None:
    """Tells nothing either way, when it writes a record in which there was one."""
    await file(grants, "work")
    make(store, "work", 0)
    await look(grants, connected)
    make(store, "work", 7)
    await look(grants, connected)
    assert len(filed(store, "work")) == len(FILED)


async def test_deleted(grants: Grants, connected: StoreClient, store: FakeStore) -> None:
    """All of it is gone, and nothing can be filed; while there is no virtual host at all, nothing is touched."""
    await file(grants, "work")
    del store.records[VIRTUAL_HOST, "work"]
    await look(grants, connected)
    assert filed(store, "work") == []
    assert (FILED_FOR, "work") not in store.records
    with pytest.raises(NotFound):
        await file(grants, "work")
    await file(grants, "/")
    del store.records[VIRTUAL_HOST, "/"]
    await look(grants, connected)
    assert len(filed(store, "/")) == len(FILED)
