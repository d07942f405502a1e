from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from services.common import credentials
from services.common.credentials import Whose
from services.common.credentials.argon2 import Argon2
from services.common.sealing import Sealing
from services.common.users import User, hash_password, verify_password


@pytest.fixture(scope="module")
def guest() -> User:
    return User(name="guest", password_hash=hash_password("guest"), tags=("administrator",), loopback_only=True)


def test_right_password(guest: User) -> None:
    """The password that was hashed is accepted."""
    assert verify_password(guest, "guest")


def test_wrong_password(guest: User) -> None:
    """Another password is refused, the empty one too."""
    assert not verify_password(guest, "Guest")
    assert not verify_password(guest, "")


def test_an_empty_password() -> None:
    """Is never accepted, also where a hash of it is kept."""
    assert not verify_password(User(name="eve", password_hash=hash_password("")), "")


def test_unknown_user() -> None:
    """A name without a user has no password, not even the empty one that stands in for it."""
    assert not verify_password(None, "guest")
    assert not verify_password(None, "")


def test_unreadable_hash() -> None:
    """A record whose hash is not argon2 accepts no password."""
    assert not verify_password(User(name="eve", password_hash="plain"), "plain")


def test_hashes_are_salted() -> None:
    """Two users with one password have different hashes."""
    assert hash_password("same") != hash_password("same")


def test_json_round_trip(guest: User) -> None:
    """What is written as a record is read back equal, and the password is not in it."""
    assert User.from_json(guest.to_json()) == guest
    assert b'"guest"' in guest.to_json()
    assert guest.password_hash.startswith("$argon2id$")


def test_bad_record() -> None:
    """A record that is no user is refused."""
    with pytest.raises(ValidationError):
        User.from_json(b'{"name": 1}')


@pytest.mark.parametrize("kind", ["rabbitmq-md5", "rabbitmq-sha256", "rabbitmq-sha512", "scram-sha-256", "recoverable"])
def test_as_slow_as_without_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The time of a refusal does not reveal whether there is such a user, also one with a quick hash."""
    sealing, hashed = Sealing(tmp_path / "keys"), []
    kept = credentials.kind_named(kind).make("right", Whose("anna", sealing))
    monkeypatch.setattr(Argon2, "fits", lambda *said: hashed.append(said) or False)
    assert verify_password(User(name="anna", password_hash=kept), "right", sealing)
    assert not hashed
    assert not verify_password(User(name="anna", password_hash=kept), "wrong", sealing)
    assert not verify_password(None, "wrong", sealing)
    assert len(hashed) == 2
