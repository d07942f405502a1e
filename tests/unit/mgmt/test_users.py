from __future__ import annotations

import contextlib
import secrets
import threading

import pytest

from services.common import scram
from services.common.clients.mgmt import MgmtClient
from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.common.credentials import Whose
from services.common.credentials.rabbitmq import SHA256 as RABBITMQ
from services.common.errors import NotFound, PreconditionFailed, SyntaxFault
from services.common.sealing import Sealing
from services.common.users import User, hash_password, verify_password
from services.mgmt.service import Service
from services.mgmt.users import Users
from tests.support.fake_store import FakeStore


def _stored(store: FakeStore, name: str) -> User:
    return User.from_json(store.records["user", name].value)


def _keys(store: FakeStore, name: str) -> scram.KeysOfUser:
    return scram.KeysOfUser.from_json(store.records[scram.RECORD_KIND, name].value)


def _some_keys() -> scram.Keys:
    return scram.Keys(salt=secrets.token_bytes(16), iterations=4096, stored_key=b"s" * 20, server_key=b"\xff" * 20)


async def test_first_start_makes_guest(client: MgmtClient, store: FakeStore) -> None:
    """A stack without users gets guest/guest, an administrator from this machine only, and durable."""
    guest = _stored(store, "guest")
    assert verify_password(guest, "guest")
    assert (guest.tags, guest.loopback_only) == (("administrator",), True)
    assert not store.records["user", "guest"].transient
    assert [user.name for user in await client.list_users()] == ["guest"]


async def test_guest_does_not_come_back(settings: Settings, store: FakeStore) -> None:
    """Where all users were deleted, the next start makes none with a well-known password, and permits nothing."""
    for _ in range(2):
        service = Service(settings)
        await service.start()
        async with MgmtClient(settings.address_of("mgmt")) as connected:
            with contextlib.suppress(NotFound):
                await connected.delete_user("guest")
        await service.stop()
        assert not [kind for kind, _ in store.records if kind in {"user", "permission"}]


async def test_no_guest_beside_others(settings: Settings, store: FakeStore) -> None:
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


async def test_a_password_has_keys(client: MgmtClient, store: FakeStore) -> None:
    """With a password its user gets keys for what is offered of SCRAM, and new ones with the next password."""
    await client.put_user("alice", "old")
    first = _keys(store, "alice")
    assert set(first.of(_stored(store, "alice"))) == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
    await client.put_user("alice", "new")
    assert first.of(_stored(store, "alice")) == {}
    assert set(_keys(store, "alice").of(_stored(store, "alice"))) == {"SCRAM-SHA-256", "SCRAM-SHA-512"}


async def test_keys_go_with_their_user(client: MgmtClient, store: FakeStore) -> None:
    """Nothing of a user is left that was deleted."""
    await client.put_user("alice", "secret")
    await client.delete_user("alice")
    assert [kind for kind, name in store.records if name == "alice"] == []


async def test_an_older_user_gets_keys(client: MgmtClient, store: FakeStore) -> None:
    """For users without them, and only for their password; existing ones stay."""
    await client.put_user("alice", "secret")
    del store.records[scram.RECORD_KIND, "alice"]
    alice = _stored(store, "alice")
    first, second = ({name: _some_keys() for name in names} for names in (["SCRAM-SHA-1"], ["SCRAM-SHA-1", "X"]))
    await client.add_keys("alice", alice.password_hash, first)
    assert _keys(store, "alice").of(alice) == first
    await client.add_keys("alice", alice.password_hash, second)
    assert _keys(store, "alice").of(alice) == {**second, **first}
    assert _stored(store, "alice") == alice


async def test_keys_of_another_password_are_refused(client: MgmtClient, store: FakeStore) -> None:
    """A password may have been changed since it was said, and its user deleted."""
    await client.put_user("alice", "old")
    old = _stored(store, "alice")
    await client.put_user("alice", "new")
    kept = _keys(store, "alice")
    with pytest.raises(PreconditionFailed, match="was changed meanwhile"):
        await client.add_keys("alice", old.password_hash, {"SCRAM-SHA-1": _some_keys()})
    assert _keys(store, "alice") == kept
    with pytest.raises(NotFound, match="bob"):
        await client.add_keys("bob", old.password_hash, {"SCRAM-SHA-1": _some_keys()})
    assert (scram.RECORD_KIND, "bob") not in store.records


async def test_the_disguise_is_made_once(client: MgmtClient, settings: Settings, store: FakeStore) -> None:
    """A name without a user looks the same after the next start, also where users are older than the disguise."""
    [secret] = [record.value for (kind, _), record in store.records.items() if kind == scram.DISGUISE_KIND]
    assert len(secret) == 32
    connected = StoreClient(settings.address_of("store"))
    await Users(connected).disguise()
    assert [record.value for (kind, _), record in store.records.items() if kind == scram.DISGUISE_KIND] == [secret]
    await connected.close()


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


async def test_a_change_changes_what_is_said(client: MgmtClient, store: FakeStore) -> None:
    """A password, tags, or where from; the rest stays. The password counts from then on, and so do its keys."""
    await client.put_user("alice", "old", ["monitoring"])
    first = _stored(store, "alice")
    await client.change_user("alice", loopback_only=True)
    await client.change_user("alice", tags=["administrator"])
    second = _stored(store, "alice")
    assert (second.tags, second.loopback_only) == (("administrator",), True)
    assert (second.password_hash, second.revision) == (first.password_hash, first.revision)
    await client.change_user("alice", password="new")
    third = _stored(store, "alice")
    assert (third.tags, third.loopback_only) == (("administrator",), True)
    assert verify_password(third, "new")
    assert third.revision != second.revision
    assert _keys(store, "alice").of(third)
    await client.change_user("alice", tags=[])
    assert _stored(store, "alice").tags == ()
    with pytest.raises(NotFound, match="bob"):
        await client.change_user("bob", tags=[])
    with pytest.raises(SyntaxFault):
        await client.change_user("alice", password="")


async def test_a_hash_of_rabbitmqs(client: MgmtClient, store: FakeStore) -> None:
    """Is taken as it is; with its password said, a newer hash takes its place, and connections have nothing to fear."""
    kept = RABBITMQ.make("secret", Whose("alice"))
    await client.put_user("alice", kept, kind="rabbitmq-sha256", hashed=True)
    older = _stored(store, "alice")
    assert older.password_hash == kept
    assert verify_password(older, "secret")
    await client.add_keys("alice", kept, {"SCRAM-SHA-1": _some_keys()}, hash_password("secret"))
    newer = _stored(store, "alice")
    assert newer.password_hash.startswith("$argon2")
    assert newer.standing == older.standing
    assert set(_keys(store, "alice").of(newer)) == {"SCRAM-SHA-1"}
    for wrong in ("rabbitmq-sha256:AAAA", "secret", "$argon2id$x"):
        with pytest.raises(SyntaxFault):
            await client.put_user("bob", wrong, kind="rabbitmq-sha256", hashed=True)
    with pytest.raises(SyntaxFault, match="no kind of credentials"):
        await client.put_user("bob", "secret", kind="rot13")


async def test_a_password_that_is_kept_recoverably(client: MgmtClient, store: FakeStore, settings: Settings) -> None:
    """Is encrypted in the store, and fits where the key is."""
    await client.put_user("alice", "a secret of hers", kind="recoverable")
    alice = _stored(store, "alice")
    assert all(b"a secret of hers" not in record.value for record in store.records.values())
    assert verify_password(alice, "a secret of hers", Sealing.of(settings))
    assert not verify_password(alice, "another", Sealing.of(settings))


async def test_hashes_are_looked_at_in_a_thread(client: MgmtClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes as long as to sign in, and thousands of them come with definitions: mgmt serves others meanwhile."""
    threads = []
    monkeypatch.setattr(RABBITMQ, "check", lambda _kept: threads.append(threading.get_ident()))
    kept = RABBITMQ.make("secret", Whose("alice"))
    await client.put_user("alice", kept, kind="rabbitmq-sha256", hashed=True)
    await client.change_user("alice", password=kept, kind="rabbitmq-sha256", hashed=True)
    assert len(threads) == 2
    assert threading.get_ident() not in threads
