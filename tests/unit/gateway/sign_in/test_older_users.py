"""A user from before there were keys gets them when it signs in with its password, and nothing waits for that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self

import pytest

from services.common.credentials import Whose
from services.common.credentials.rabbitmq import SHA256 as RABBITMQ
from services.common.errors import PreconditionFailed, Unavailable
from services.common.scram import Keys
from services.common.users import User, verify_password
from services.gateway.sign_in import older_users as module
from services.gateway.sign_in.older_users import OlderUsers

ALICE = User(name="alice", password_hash="hash of alice")
OFFERED = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Mgmt:
    """Keeps what it is given, in `kept`, or fails; is connected to for each."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, str, list[str]]] = []
        self.renewed: list[str] = []
        self.failure: Exception | None = None
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()
        self.answers.set()
        self.connected = 0

    async def __aenter__(self) -> Self:
        self.connected += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.connected -= 1

    async def add_keys(self, name: str, password_hash: str, keys: Mapping[str, Keys], renewed_hash: str = "") -> None:
        self.asked.set()
        await self.answers.wait()
        if self.failure:
            raise self.failure
        self.kept.append((name, password_hash, sorted(keys)))
        self.renewed.append(renewed_hash)


class Gateway:
    """Its older users, its clock, and what was hashed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.hashed: list[str] = []
        self.mgmt = Mgmt()
        mgmt: Any = self.mgmt
        self.older = OlderUsers(OFFERED, lambda: mgmt)
        monkeypatch.setattr(module, "monotonic", lambda: self.now)
        monkeypatch.setattr(module, "make_keys", self.make)

    def make(self, password: str, mechanisms: list[str]) -> dict[str, Keys]:
        self.hashed.append(password)
        keys = Keys(salt=b"", iterations=1, stored_key=b"", server_key=b"")
        return {} if password == "\t" else dict.fromkeys(mechanisms, keys)

    async def settled(self) -> None:
        await asyncio.wait_for(asyncio.gather(*self.older._tasks._tasks), 10)


@pytest.fixture
async def gateway(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gateway]:
    gateway = Gateway(monkeypatch)
    yield gateway
    await gateway.older.stop()


async def test_keys_are_made_for_what_is_missing(gateway: Gateway) -> None:
    """Of what is offered, once, with the hash that the password was verified with."""
    gateway.older.said_password(ALICE, "secret", ["SCRAM-SHA-512"])
    await gateway.settled()
    assert gateway.mgmt.kept == [("alice", ALICE.password_hash, ["SCRAM-SHA-256"])]
    assert gateway.mgmt.connected == 0


async def test_a_user_with_all_keys_costs_nothing(gateway: Gateway) -> None:
    """Nor does a gateway that offers no SCRAM."""
    gateway.older.said_password(ALICE, "secret", OFFERED[1:])
    OlderUsers(["PLAIN"], lambda: pytest.fail("connected")).said_password(ALICE, "secret", [])
    assert (len(gateway.older._tasks._tasks), gateway.hashed) == (0, [])


async def test_a_storm_of_logins_hashes_once(gateway: Gateway) -> None:
    """Until the new record has come round, too. The next password is another matter."""
    for _ in range(100):
        gateway.older.said_password(ALICE, "secret", [])
    await gateway.settled()
    gateway.older.said_password(ALICE, "secret", [])
    assert gateway.hashed == ["secret"]
    gateway.older.said_password(ALICE.model_copy(update={"password_hash": "another"}), "new", [])
    await gateway.settled()
    assert gateway.hashed == ["secret", "new"]


async def test_a_user_that_has_changed_is_no_fault(gateway: Gateway) -> None:
    """The next one gets keys."""
    gateway.mgmt.failure = PreconditionFailed("another password by now")
    gateway.older.said_password(ALICE, "alice", [])
    await gateway.settled()
    gateway.mgmt.failure = None
    gateway.older.said_password(User(name="bob", password_hash=""), "bob", [])
    await gateway.settled()
    assert [name for name, *_ in gateway.mgmt.kept] == ["bob"]


async def test_mgmt_is_left_alone_for_a_while_that_failed(gateway: Gateway) -> None:
    """Nothing is hashed for it meanwhile, not even for those who waited; later there is another try."""
    gateway.mgmt.failure = Unavailable("away")
    bob = User(name="bob", password_hash="hash of bob")
    for user in (ALICE, bob):
        gateway.older.said_password(user, user.name, [])
    await gateway.settled()
    gateway.older.said_password(User(name="carol", password_hash=""), "carol", [])
    assert (gateway.hashed, gateway.mgmt.kept) == (["alice"], [])
    gateway.mgmt.failure = None
    gateway.now += module._AGAIN
    for user in (ALICE, bob):
        gateway.older.said_password(user, user.name, [])
    await gateway.settled()
    assert [name for name, *_ in gateway.mgmt.kept] == ["alice", "bob"]


async def test_those_who_wait_are_few(gateway: Gateway) -> None:
    """Their passwords are in memory until it is their turn."""
    gateway.mgmt.answers.clear()
    for number in range(1000):
        gateway.older.said_password(User(name=str(number), password_hash=""), "secret", [])
    await gateway.mgmt.asked.wait()
    assert len(gateway.older._tasks._tasks) == module._WAITING
    gateway.mgmt.answers.set()
    await gateway.settled()
    assert len(gateway.mgmt.kept) == module._WAITING
    gateway.older.said_password(User(name="999", password_hash=""), "secret", [])
    await gateway.settled()
    assert gateway.mgmt.kept[-1][0] == "999"


async def test_a_password_that_scram_cannot_say(gateway: Gateway) -> None:
    """Mgmt hears nothing of it."""
    gateway.older.said_password(ALICE, "\t", [])
    await gateway.settled()
    assert gateway.hashed == ["\t"]
    assert not gateway.mgmt.asked.is_set()


async def test_a_gateway_that_stops_does_not_wait(gateway: Gateway) -> None:
    """For mgmt that does not answer."""
    gateway.mgmt.answers.clear()
    gateway.older.said_password(ALICE, "secret", [])
    await gateway.mgmt.asked.wait()
    await asyncio.wait_for(gateway.older.stop(), 10)
    assert gateway.mgmt.connected == 0


@pytest.mark.parametrize("has", [OFFERED[1:], []])
async def test_an_older_hash_is_renewed(gateway: Gateway, has: list[str]) -> None:
    """It costs nothing to guess at; with a newer one go keys for what is missing."""
    kept = RABBITMQ.make("secret", Whose("alice"))
    older = User(name="alice", password_hash=kept)
    gateway.older.said_password(older, "secret", has)
    await gateway.settled()
    assert gateway.mgmt.kept == [("alice", kept, [] if has else sorted(OFFERED[1:]))]
    [renewed] = gateway.mgmt.renewed
    assert renewed.startswith("$argon2id$")
    assert verify_password(User(name="alice", password_hash=renewed), "secret")
