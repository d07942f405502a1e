from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
import structlog

from services.common import scram
from services.common.authentication.attempts import OF_ADDRESS, OF_USER_THERE
from services.common.authentication.authenticator import Authenticator
from services.common.authentication.claims import Anonymous, Credentials, Proof
from services.common.authentication.kinds import file_lines, internal
from services.common.authentication.known_users import KnownUsers
from services.common.authentication.refusal import Refused, TooManyFailures
from services.common.errors import AccessRefused, Unavailable
from services.common.scram import Keys, KeysOfUser, make_keys
from services.common.users import User, hash_password
from services.rpc import store_pb2
from tests.support.signing_in import INTERNAL, authenticator_of, provider_records, providing, user_record, watch

GUEST = User(name="guest", password_hash=hash_password("guest"), loopback_only=True)
HERE = "127.0.0.1"
ALICE = User(name="alice", password_hash=hash_password("secret"))


SCRAM = "SCRAM-SHA-256"
KEYS = make_keys("secret", [SCRAM])


@pytest.fixture
async def authenticator() -> Authenticator:
    """Knows guest, for this machine only, and alice."""
    authenticator = authenticator_of()
    await authenticator.follow(
        watch(store_pb2.Records(snapshot=True, last=True, records=[user_record(GUEST), user_record(ALICE)]))
    )
    return authenticator


async def test_the_right_password_gives_the_name(authenticator: Authenticator) -> None:
    """A user is let in from anywhere, a second time too."""
    for _ in range(2):
        assert (await authenticator.sign_in(INTERNAL, Credentials("alice", "secret"), "192.0.2.7")).name == "alice"


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("alice", ""), ("nobody", "secret")])
async def test_wrong_credentials_are_refused_in_one_way(authenticator: Authenticator, user: str, password: str) -> None:
    """Whether the user or the password is wrong, the text is the same."""
    with pytest.raises(AccessRefused, match="check user name and password"):
        await authenticator.sign_in(INTERNAL, Credentials(user, password), "127.0.0.1")


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.1.2.3", "::1", ""])
async def test_guest_comes_in_from_this_machine(authenticator: Authenticator, peer: str) -> None:
    """A loopback-only user may come over loopback, or over a unix socket."""
    assert (await authenticator.sign_in(INTERNAL, Credentials("guest", "guest"), peer)).name == "guest"


@pytest.mark.parametrize("peer", ["192.0.2.7", "10.0.0.1", "2001:db8::1", "not an address"])
async def test_guest_stays_outside_of_other_machines(authenticator: Authenticator, peer: str) -> None:
    """A loopback-only user is refused from every other address."""
    with pytest.raises(AccessRefused, match="only connect from this machine"):
        await authenticator.sign_in(INTERNAL, Credentials("guest", "guest"), peer)


async def test_changes_of_users_count_at_once(authenticator: Authenticator) -> None:
    """A password that was changed, or a user that was deleted, is refused though it was let in before."""
    await authenticator.sign_in(INTERNAL, Credentials("alice", "secret"), "127.0.0.1")
    changed = ALICE.model_copy(update={"password_hash": await asyncio.to_thread(hash_password, "new")})
    await authenticator.follow(watch(store_pb2.Records(records=[user_record(changed)])))
    with pytest.raises(AccessRefused):
        await authenticator.sign_in(INTERNAL, Credentials("alice", "secret"), "127.0.0.1")
    assert (await authenticator.sign_in(INTERNAL, Credentials("alice", "new"), "127.0.0.1")).name == "alice"
    await authenticator.follow(watch(store_pb2.Records(records=[user_record(changed, deleted=True)])))
    with pytest.raises(AccessRefused):
        await authenticator.sign_in(INTERNAL, Credentials("alice", "new"), "127.0.0.1")


async def test_connections_of_a_deleted_user_end(authenticator: Authenticator) -> None:
    """Also when it was while the store was away: a new whole says who is left. A changed password ends nothing."""
    gone: list[str] = []
    authenticator.close_user = lambda _provider, name, _reason: gone.append(name)
    await authenticator.follow(watch(store_pb2.Records(records=[user_record(ALICE), user_record(GUEST, deleted=True)])))
    assert gone == ["guest"]
    unknown = User(name="nobody", password_hash="")
    await authenticator.follow(watch(store_pb2.Records(records=[user_record(unknown, deleted=True)])))
    assert gone == ["guest"]
    parts = [
        store_pb2.Records(snapshot=True, records=[user_record(GUEST)]),
        store_pb2.Records(snapshot=True, last=True),
    ]
    await authenticator.follow(watch(*parts))
    assert gone == ["guest", "alice"]


@pytest.mark.parametrize(
    ("change", "ends"),
    [
        ({"password_hash": "a newer hash"}, False),
        ({"revision": "2"}, True),
        ({"tags": ("monitoring",)}, True),
        ({"loopback_only": True}, True),
    ],
)
async def test_connections_of_a_changed_user_end(
    authenticator: Authenticator, change: dict[str, Any], ends: bool
) -> None:
    """What connections rest on: a newer hash of the same password is not."""
    gone: list[tuple[str, str, str]] = []
    authenticator.close_user = lambda *about: gone.append(about)
    first = ALICE.model_copy(update={"revision": "1"})
    await authenticator.follow(watch(store_pb2.Records(records=[user_record(first)])))
    gone.clear()
    await authenticator.follow(watch(store_pb2.Records(records=[user_record(first.model_copy(update=change))])))
    assert gone == ([("internal", "alice", "user 'alice' was changed")] if ends else [])


@pytest.mark.parametrize(("user", "peer"), [("alice", "192.0.2.7"), ("guest", HERE)])
async def test_a_client_without_a_name_is_the_configured_user(user: str, peer: str) -> None:
    """Any user, at an address from which it may sign in."""
    authenticator = authenticator_of(anonymous_user=user)
    await authenticator.follow(
        watch(store_pb2.Records(snapshot=True, last=True, records=[user_record(GUEST), user_record(ALICE)]))
    )
    assert (await authenticator.sign_in(INTERNAL, Anonymous("somebody"), peer)).name == user


@pytest.mark.parametrize(
    ("user", "text"),
    [("", "check user name"), ("nobody", "check user name"), ("guest", "only connect from this machine")],
)
async def test_a_client_without_a_name_may_be_refused(user: str, text: str) -> None:
    """Where there is no such user, or it is one for this machine only."""
    authenticator = authenticator_of(anonymous_user=user)
    await authenticator.follow(
        watch(store_pb2.Records(snapshot=True, last=True, records=[user_record(GUEST), user_record(ALICE)]))
    )
    with structlog.testing.capture_logs() as logged, pytest.raises(AccessRefused, match=text):
        await authenticator.sign_in(INTERNAL, Anonymous(""), "192.0.2.7")
    warned = [line["user"] for line in logged if line["log_level"] == "warning"]
    assert warned == ([] if user == "guest" else [user])


async def test_a_client_without_a_name_has_not_proved_itself() -> None:
    """From an address with too many guesses, only users that have signed in with a password before may still try."""
    authenticator = authenticator_of(anonymous_user="alice")
    await authenticator.follow(watch(store_pb2.Records(snapshot=True, last=True, records=[user_record(ALICE)])))
    await authenticator.sign_in(INTERNAL, Anonymous(""), HERE)
    for number in range(OF_ADDRESS.burst):
        with pytest.raises(AccessRefused):
            await authenticator.sign_in(INTERNAL, Proof(str(number), SCRAM, KEYS[SCRAM], False, b""), HERE)
    with pytest.raises(TooManyFailures):
        await authenticator.sign_in(INTERNAL, Credentials("alice", "secret"), HERE)
    assert (await authenticator.sign_in(INTERNAL, Anonymous(""), HERE)).name == "alice"


# -------------------------------------------------------------- proofs, of SCRAM


def keys_record(user: User, keys: dict[str, Keys], *, deleted: bool = False) -> store_pb2.Record:
    value = KeysOfUser(password_hash=user.password_hash, keys=keys).to_json()
    return store_pb2.Record(kind=scram.RECORD_KIND, key=user.name, value=value, deleted=deleted)


def disguise_record(secret: bytes) -> store_pb2.Record:
    return store_pb2.Record(kind=scram.DISGUISE_KIND, key="secret", value=secret)


@pytest.fixture
async def knowing(authenticator: Authenticator) -> Authenticator:
    """Has keys of guest and of alice."""
    records = [keys_record(GUEST, KEYS), keys_record(ALICE, KEYS), disguise_record(b"x" * 32)]
    await authenticator.follow(watch(store_pb2.Records(records=records)))
    return authenticator


def proof(knowing: Authenticator, user: str, peer: str, *, fits: bool = True) -> Proof:
    """As a mechanism makes it of the client's messages."""
    return Proof(user, SCRAM, knowing.keys_of(INTERNAL, user, SCRAM, peer), fits, b"v=")


async def test_a_client_with_a_proof_is_let_in(knowing: Authenticator) -> None:
    """With the user's keys; without them no proof fits, also where a mechanism uses a disguise."""
    assert knowing.keys_of(INTERNAL, "alice", SCRAM, HERE) == KEYS[SCRAM]
    assert (await knowing.sign_in(INTERNAL, proof(knowing, "alice", HERE), HERE)).name == "alice"
    for claim in (proof(knowing, "alice", HERE, fits=False), proof(knowing, "nobody", HERE)):
        with pytest.raises(AccessRefused, match="check user name and password"):
            await knowing.sign_in(INTERNAL, claim, HERE)


async def test_a_proof_does_not_bring_guest_in_from_elsewhere(knowing: Authenticator) -> None:
    """A loopback-only user is told, as with its password."""
    assert (await knowing.sign_in(INTERNAL, proof(knowing, "guest", HERE), HERE)).name == "guest"
    with pytest.raises(AccessRefused, match="only connect from this machine"):
        await knowing.sign_in(INTERNAL, proof(knowing, "guest", "192.0.2.7"), "192.0.2.7")


@pytest.mark.parametrize("user", ["alice", "nobody"])
async def test_wrong_proofs_are_soon_not_looked_at(knowing: Authenticator, user: str) -> None:
    """They count as wrong passwords do, also for unknown names: then not even a salt is told."""
    for _ in range(OF_USER_THERE.burst):
        with pytest.raises(AccessRefused) as refused:
            await knowing.sign_in(INTERNAL, proof(knowing, user, HERE, fits=False), HERE)
        assert not isinstance(refused.value, TooManyFailures)
    with pytest.raises(TooManyFailures):
        knowing.keys_of(INTERNAL, user, SCRAM, HERE)
    with pytest.raises(TooManyFailures):
        await knowing.sign_in(INTERNAL, Credentials(user, "secret"), HERE)
    assert knowing.keys_of(INTERNAL, "guest", SCRAM, HERE)


async def test_proofs_that_were_begun_before_count_too(knowing: Authenticator) -> None:
    """A client that begins a thousand exchanges at once has no more tries than others; the right one comes too late."""
    begun = [proof(knowing, "alice", HERE, fits=False) for _ in range(100)]
    right = proof(knowing, "alice", HERE)
    answers = []
    for claim in [*begun, right]:
        with pytest.raises(AccessRefused) as refused:
            await knowing.sign_in(INTERNAL, claim, HERE)
        answers.append(type(refused.value))
    assert answers.count(Refused) == OF_USER_THERE.burst
    assert answers[-1] is TooManyFailures


@pytest.mark.parametrize("change", ["deleted", "password", "made anew"])
async def test_a_user_that_changes_in_the_middle_stays_outside(knowing: Authenticator, change: str) -> None:
    """A proof of the password that was is none, nor is one of a user that is gone."""
    claim = proof(knowing, "alice", HERE)
    changed = ALICE.model_copy(update={"password_hash": "another"})
    records = {
        "deleted": [user_record(ALICE, deleted=True), keys_record(ALICE, KEYS, deleted=True)],
        "password": [user_record(changed)],
        "made anew": [user_record(changed), keys_record(changed, make_keys("secret", [SCRAM]))],
    }
    await knowing.follow(watch(store_pb2.Records(records=records[change])))
    with pytest.raises(AccessRefused):
        await knowing.sign_in(INTERNAL, claim, HERE)


async def test_keys_of_a_former_password_are_none(knowing: Authenticator) -> None:
    """They may be written at the same time as a new password, and stay without effect."""
    changed = ALICE.model_copy(update={"password_hash": "another"})
    await knowing.follow(watch(store_pb2.Records(records=[user_record(changed), keys_record(ALICE, KEYS)])))
    assert knowing.keys_of(INTERNAL, "alice", SCRAM, HERE) != KEYS[SCRAM]
    with structlog.testing.capture_logs() as logged, pytest.raises(AccessRefused):
        await knowing.sign_in(INTERNAL, proof(knowing, "alice", HERE), HERE)
    assert [(line["user"], line["mechanism"]) for line in logged] == [("alice", SCRAM)]


async def test_the_disguise_is_the_stacks(knowing: Authenticator) -> None:
    """Every gateway tells the same salt for a name without a user, also after the store was away."""
    salt = knowing.keys_of(INTERNAL, "nobody", SCRAM, HERE).salt
    other = authenticator_of()
    await other.follow(watch(store_pb2.Records(snapshot=True, last=True, records=[disguise_record(b"x" * 32)])))
    assert other.keys_of(INTERNAL, "nobody", SCRAM, HERE).salt == salt
    snapshot = [store_pb2.Records(snapshot=True), store_pb2.Records(snapshot=True, last=True)]
    await other.follow(watch(*snapshot, *snapshot))
    assert other.keys_of(INTERNAL, "nobody", SCRAM, HERE).salt == salt


async def test_an_older_users_name_looks_like_an_unknown_one(authenticator: Authenticator) -> None:
    """A user without keys yet has a disguise, the same each time."""
    first, second = (authenticator.keys_of(INTERNAL, "alice", SCRAM, HERE) for _ in range(2))
    assert first == second


class Told:
    """In place of OlderUsers."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, list[str]]] = []

    def said_password(self, user: User, password: str, has: Collection[str]) -> None:
        assert user.password_hash
        self.said.append((user.name, password, sorted(has)))


async def test_passwords_that_fit_are_passed_on() -> None:
    """With what the user has keys for, so that the others can be made; those that do not fit are not."""
    told: Any = Told()
    authenticator = authenticator_of(told)
    records = [user_record(GUEST), user_record(ALICE), keys_record(ALICE, KEYS)]
    await authenticator.follow(watch(store_pb2.Records(snapshot=True, last=True, records=records)))
    for claim in (Credentials("alice", "secret"), Credentials("guest", "guest"), proof(authenticator, "alice", HERE)):
        await authenticator.sign_in(INTERNAL, claim, HERE)
    for claim in (Credentials("alice", "wrong"), Credentials("nobody", "secret")):
        with pytest.raises(AccessRefused):
            await authenticator.sign_in(INTERNAL, claim, HERE)
    assert told.said == [("alice", "secret", [SCRAM]), ("guest", "guest", [])]


@pytest.mark.parametrize("change", ["deleted", "changed"])
async def test_a_user_that_changes_while_the_password_is_checked_stays_outside(
    authenticator: Authenticator, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """The connection is not listed yet, so nothing else would end it."""
    changed = user_record(ALICE.model_copy(update={"revision": "2"}))
    records = {"deleted": [], "changed": [changed]}[change]
    told = store_pb2.Records(snapshot=True, last=True, records=records)
    loop = asyncio.get_running_loop()

    def verify(*_: object) -> bool:
        asyncio.run_coroutine_threadsafe(authenticator.follow(watch(told)), loop).result(10)
        return True

    monkeypatch.setattr(internal, "verify_password", verify)
    with pytest.raises(AccessRefused):
        await authenticator.sign_in(INTERNAL, Credentials("alice", "secret"), "127.0.0.1")


@pytest.mark.parametrize("what", ["provider", "user"])
async def test_changes_during_a_sign_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """A sign-in is refused if its provider is removed, or its user deleted, meanwhile; so is the next."""
    asked, goes_on = asyncio.Event(), threading.Event()
    loop, users = asyncio.get_running_loop(), tmp_path / "users"
    users.write_text("anna:secret\n")

    def slowly(*_: object) -> bool:
        loop.call_soon_threadsafe(asked.set)
        return goes_on.wait(30)

    monkeypatch.setattr(file_lines, "fits", slowly)
    of_file = {"type": "file", "path": str(users), "format": "plain"}
    async with providing(staff=of_file, all={"type": "composite", "providers": ["staff"]}) as authenticator:
        signing_in = asyncio.ensure_future(authenticator.sign_in("all", Credentials("anna", "secret"), HERE))
        await asked.wait()
        if what == "provider":
            [record] = provider_records(staff=of_file)
            record.deleted = True
            await authenticator.follow(watch(store_pb2.Records(records=[record])))
        else:
            authenticator.end_user("staff", "anna", "is deleted")
        goes_on.set()
        with pytest.raises(Refused) as refused:
            await signing_in
        assert "while it signed in" in refused.value.reason
        if what == "provider":
            with pytest.raises(Unavailable):
                await authenticator.sign_in("all", Credentials("anna", "secret"), HERE)


async def test_the_same_records_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cost a comparison: over HTTP all are read at each request. Only what differs counts."""
    authenticator, applied = authenticator_of(), []
    apply = KnownUsers.apply
    monkeypatch.setattr(KnownUsers, "apply", lambda *said: (applied.append(said), apply(*said)))
    for _ in range(3):
        authenticator.read([user_record(ALICE)])
    assert len(applied) == 1
    authenticator.read([user_record(ALICE.model_copy(update={"tags": ("monitoring",)}))])
    assert authenticator.known.users["alice"].tags == ("monitoring",)
    await authenticator.follow(watch(store_pb2.Records(records=[user_record(ALICE, deleted=True)])))
    authenticator.read([user_record(ALICE.model_copy(update={"tags": ("monitoring",)}))])
    assert authenticator.known.users["alice"].tags == ("monitoring",)
    authenticator.read([])
    assert not authenticator.known.users


async def test_a_provider_that_is_missing_is_told_of_seldom(
    authenticator: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port that waits for it asks every two seconds: one line, and the next in ten minutes."""
    delays: list[float] = []
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "call_later", lambda delay, *_: delays.append(delay))
    with structlog.testing.capture_logs() as logged:
        for _ in range(10):
            with pytest.raises(Unavailable):
                authenticator.provider("missing")
    assert [line["provider"] for line in logged] == ["missing"]
    assert delays == [600]
