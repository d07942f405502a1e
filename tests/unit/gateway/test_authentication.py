from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from services.common.errors import AccessRefused
from services.common.users import RECORD_KIND, User, hash_password
from services.gateway.authentication import Authenticator
from services.gateway.sasl import Credentials
from services.rpc import store_pb2


def record(user: User, *, deleted: bool = False) -> store_pb2.Record:
    return store_pb2.Record(kind=RECORD_KIND, key=user.name, value=user.to_json(), deleted=deleted)


GUEST = User(name="guest", password_hash=hash_password("guest"), loopback_only=True)
ALICE = User(name="alice", password_hash=hash_password("secret"))


@pytest.fixture
async def authenticator() -> Authenticator:
    """Knows guest, who may come from this machine only, and alice."""
    authenticator = Authenticator()
    await authenticator.follow(
        watch(store_pb2.Records(snapshot=True, last=True, records=[record(GUEST), record(ALICE)]))
    )
    return authenticator


async def watch(*batches: store_pb2.Records) -> AsyncIterator[store_pb2.Records]:
    for batch in batches:
        yield batch


async def test_the_right_password_gives_the_name(authenticator: Authenticator) -> None:
    """A user is let in from anywhere, a second time too."""
    for _ in range(2):
        assert await authenticator.check(Credentials("alice", "secret"), "192.0.2.7") == "alice"


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("alice", ""), ("nobody", "secret")])
async def test_wrong_credentials_are_refused_in_one_way(authenticator: Authenticator, user: str, password: str) -> None:
    """Whether the user or the password is wrong, the text is the same."""
    with pytest.raises(AccessRefused, match="check user name and password"):
        await authenticator.check(Credentials(user, password), "127.0.0.1")


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.1.2.3", "::1", ""])
async def test_guest_comes_in_from_this_machine(authenticator: Authenticator, peer: str) -> None:
    """A loopback-only user may come over loopback, or over a unix socket."""
    assert await authenticator.check(Credentials("guest", "guest"), peer) == "guest"


@pytest.mark.parametrize("peer", ["192.0.2.7", "10.0.0.1", "2001:db8::1", "not an address"])
async def test_guest_stays_outside_of_other_machines(authenticator: Authenticator, peer: str) -> None:
    """A loopback-only user is refused from every other address."""
    with pytest.raises(AccessRefused, match="only connect from this machine"):
        await authenticator.check(Credentials("guest", "guest"), peer)


async def test_changes_of_users_count_at_once(authenticator: Authenticator) -> None:
    """A password that was changed, or a user that was deleted, is refused though it was let in before."""
    await authenticator.check(Credentials("alice", "secret"), "127.0.0.1")
    changed = ALICE.model_copy(update={"password_hash": await asyncio.to_thread(hash_password, "new")})
    await authenticator.follow(watch(store_pb2.Records(records=[record(changed)])))
    with pytest.raises(AccessRefused):
        await authenticator.check(Credentials("alice", "secret"), "127.0.0.1")
    assert await authenticator.check(Credentials("alice", "new"), "127.0.0.1") == "alice"
    await authenticator.follow(watch(store_pb2.Records(records=[record(changed, deleted=True)])))
    with pytest.raises(AccessRefused):
        await authenticator.check(Credentials("alice", "new"), "127.0.0.1")


async def test_who_was_deleted_is_told_of(authenticator: Authenticator) -> None:
    """Also when it was while the store was away: a new whole says who is left. A changed password ends nothing."""
    gone: list[str] = []
    authenticator.close_user = gone.append
    await authenticator.follow(watch(store_pb2.Records(records=[record(ALICE), record(GUEST, deleted=True)])))
    assert gone == ["guest"]
    unknown = User(name="nobody", password_hash="")
    await authenticator.follow(watch(store_pb2.Records(records=[record(unknown, deleted=True)])))
    assert gone == ["guest"]
    parts = [store_pb2.Records(snapshot=True, records=[record(GUEST)]), store_pb2.Records(snapshot=True, last=True)]
    await authenticator.follow(watch(*parts))
    assert gone == ["guest", "alice"]


async def test_who_is_deleted_while_the_password_is_checked_stays_outside(
    authenticator: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows of that connection yet, so nobody would end it."""

    async def check(*_: object) -> User:
        await authenticator.follow(watch(store_pb2.Records(snapshot=True, last=True)))
        return ALICE

    monkeypatch.setattr(authenticator._login, "check", check)
    with pytest.raises(AccessRefused):
        await authenticator.check(Credentials("alice", "secret"), "127.0.0.1")
