"""Users that are changed while a password is hashed, which takes its time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.common.credentials.argon2 import KIND as ARGON2
from services.common.errors import NotFound, PreconditionFailed
from services.common.users import User, verify_password
from services.mgmt.access.grants import Grants
from services.mgmt.leaving import delete_user
from services.mgmt.users import Users
from tests.support.fake_store import FakeStore

Meanwhile = Callable[[Awaitable[None], Callable[[], Awaitable[None]]], Awaitable[None]]
ADMINISTRATOR = ("administrator",)


@pytest.fixture
async def users(settings: Settings, store: FakeStore) -> AsyncIterator[Users]:
    connected = StoreClient(settings.address_of("store"))
    made = Users(connected, mechanisms=())
    await made.put("bob", "one", ADMINISTRATOR, loopback_only=False)
    yield made
    await connected.close()


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """While the first hashes a password, the second happens."""
    begun, go, make = threading.Event(), threading.Event(), ARGON2.make

    def slow(*what: object) -> str:
        begun.set()
        assert go.wait(10)
        return make(*what)  # type: ignore[arg-type]

    async def both(slowly: Awaitable[None], at_once: Callable[[], Awaitable[None]]) -> None:
        monkeypatch.setattr(ARGON2, "make", slow)
        hashing = asyncio.ensure_future(slowly)
        assert await asyncio.to_thread(begun.wait, 10)
        monkeypatch.setattr(ARGON2, "make", make)
        await at_once()
        go.set()
        await hashing

    return both


def _stored(store: FakeStore) -> User:
    return User.from_json(store.records["user", "bob"].value)


async def test_a_deleted_user_stays_away(users: Users, store: FakeStore, meanwhile: Meanwhile) -> None:
    """A new password for a deleted user makes no user, least of all an administrator."""
    grants = Grants(users._store)
    with pytest.raises(NotFound):
        await meanwhile(users.change("bob", password="two"), lambda: delete_user(users, grants, "bob"))
    assert ("user", "bob") not in store.records


async def test_tags_that_are_taken_away_stay_away(users: Users, store: FakeStore, meanwhile: Meanwhile) -> None:
    """A new password is all that changes."""
    await meanwhile(users.change("bob", password="two"), lambda: users.change("bob", tags=[]))
    assert _stored(store).tags == ()
    assert verify_password(_stored(store), "two")


async def test_another_of_the_name(users: Users, store: FakeStore, meanwhile: Meanwhile) -> None:
    """Keeps the password with which it was made."""

    async def another() -> None:
        await users.delete("bob")
        await users.put("bob", "three", (), loopback_only=False)

    with pytest.raises(PreconditionFailed, match="at the same time"):
        await meanwhile(users.change("bob", password="two"), another)
    assert verify_password(_stored(store), "three")


async def test_several_changes_at_once(users: Users, store: FakeStore) -> None:
    """Each changes what it says, and nothing else."""
    await asyncio.gather(users.change("bob", tags=[]), users.change("bob", loopback_only=True))
    assert (_stored(store).tags, _stored(store).loopback_only) == ((), True)


async def test_who_may_only_create(users: Users, store: FakeStore, meanwhile: Meanwhile) -> None:
    """A caller who may only create replaces no user made meanwhile; one who may only replace makes no deleted one."""
    await users.delete("bob")
    with pytest.raises(PreconditionFailed, match="user 'bob' was added meanwhile"):
        await meanwhile(
            users.put("bob", "two", (), loopback_only=False, there=False),
            lambda: users.put("bob", "one", ADMINISTRATOR, loopback_only=False),
        )
    assert _stored(store).tags == ADMINISTRATOR
    with pytest.raises(NotFound):
        await meanwhile(
            users.put("bob", "two", ADMINISTRATOR, loopback_only=False, there=True), lambda: users.delete("bob")
        )
    assert ("user", "bob") not in store.records
