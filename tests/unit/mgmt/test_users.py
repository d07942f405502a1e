from __future__ import annotations

import pytest

from services.common.clients.mgmt import MgmtClient
from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.common.errors import NotFound, SyntaxFault
from services.common.users import User, verify_password
from services.mgmt.users import Users
from tests.support.fake_store import FakeStore


def _stored(store: FakeStore, name: str) -> User:
    return User.from_json(store.records["user", name].value)


async def test_first_start_makes_guest(client: MgmtClient, store: FakeStore) -> None:
    """A stack without users gets guest/guest, an administrator from this machine only, and durable."""
    guest = _stored(store, "guest")
    assert verify_password(guest, "guest")
    assert (guest.tags, guest.loopback_only) == (("administrator",), True)
    assert not store.records["user", "guest"].transient
    assert [user.name for user in await client.list_users()] == ["guest"]


async def test_guest_does_not_come_back(settings: Settings, store: FakeStore) -> None:
    """Where there is any user, no guest is made."""
    connected = StoreClient(settings.address_of("store"))
    users = Users(connected)
    await users.put("alice", "secret", [], loopback_only=False)
    await users.seed()
    assert [user.name for user in await users.all()] == ["alice"]
    await connected.close()


async def test_put_and_list(client: MgmtClient, store: FakeStore) -> None:
    """A user that was put is listed by name, with its tags, and its password fits."""
    await client.put_user("alice", "secret", ["monitoring", "policymaker"])
    alice, guest = await client.list_users()
    assert (alice.name, list(alice.tags), alice.loopback_only) == ("alice", ["monitoring", "policymaker"], False)
    assert guest.name == "guest"
    assert verify_password(_stored(store, "alice"), "secret")


async def test_put_replaces(client: MgmtClient, store: FakeStore) -> None:
    """A second put changes the password and drops the tags that it does not name."""
    await client.put_user("alice", "old", ["monitoring"])
    await client.put_user("alice", "new", loopback_only=True)
    alice = _stored(store, "alice")
    assert verify_password(alice, "new")
    assert not verify_password(alice, "old")
    assert (alice.tags, alice.loopback_only) == ((), True)


async def test_delete(client: MgmtClient) -> None:
    """A deleted user is gone; to delete one that is not there is an error with its type kept over gRPC."""
    await client.delete_user("guest")
    assert not await client.list_users()
    with pytest.raises(NotFound, match="guest"):
        await client.delete_user("guest")


@pytest.mark.parametrize(("name", "password"), [("", "x"), ("é" * 128, "x"), ("alice", "")])
async def test_unusable(client: MgmtClient, name: str, password: str) -> None:
    """A name or password that no client could log in with is refused."""
    with pytest.raises(SyntaxFault):
        await client.put_user(name, password)
