from __future__ import annotations

from base64 import b64decode

import pytest
from pydantic import ValidationError
from scramp import ScramMechanism

from services.common import scram
from services.common.scram import Keys, KeysOfUser, make_keys
from services.common.users import User

_BOTH = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.mark.specification("RFC 5802, section 3")
@pytest.mark.parametrize("mechanism", sorted(scram.MECHANISMS))
def test_keys_are_those_of_the_password(mechanism: str) -> None:
    """They are what SCRAM computes of the password, the salt and the count; the salt is new each time."""
    keys = make_keys("pencil", [mechanism])[mechanism]
    wanted = ScramMechanism(mechanism).make_auth_info("pencil", keys.iterations, keys.salt)
    assert (keys.salt, keys.stored_key, keys.server_key, keys.iterations) == wanted
    assert keys.iterations == scram.ITERATIONS
    assert len(keys.salt) == scram.SALT_BYTES
    assert make_keys("pencil", [mechanism])[mechanism].salt != keys.salt


def test_keys_are_made_for_what_is_offered() -> None:
    """Of the mechanisms that are named, SCRAM's get keys, and others need none."""
    assert set(make_keys("pencil", ["PLAIN", *_BOTH, "SCRAM-SHA-3"])) == set(_BOTH)


@pytest.mark.specification("RFC 5802, section 2.2")
@pytest.mark.parametrize("password", ["\t", "a\u0627", "\u00ad", "\ud800"])
def test_what_scram_cannot_say_has_no_keys(password: str) -> None:
    """Control characters, mixed directions, and what stringprep makes empty, which must let no client in."""
    assert make_keys(password, _BOTH) == {}


def test_json_round_trip() -> None:
    """What is written as a record is read back equal, and neither the password nor what is no text is in it."""
    written = KeysOfUser(password_hash="$argon2id$…", keys=make_keys("pencil", _BOTH))
    assert KeysOfUser.from_json(written.to_json()) == written

    assert b"pencil" not in written.to_json()


def test_bad_record() -> None:
    """A record that holds no keys is refused."""
    with pytest.raises(ValidationError):
        KeysOfUser.from_json(b'{"password_hash": "x", "keys": {"SCRAM-SHA-256": {"salt": "?"}}}')


def test_keys_belong_to_a_password() -> None:
    """They are good for the hash that they were made with: not for the user's next password."""
    keys = {"SCRAM-SHA-256": Keys(salt=b"s", iterations=4096, stored_key=b"k", server_key=b"k")}
    record = KeysOfUser(password_hash="first", keys=keys)
    assert record.of(User(name="alice", password_hash="first")) == keys
    assert record.of(User(name="alice", password_hash="second")) == {}


@pytest.mark.specification("RFC 7677, section 3")
def test_the_rfcs_example_fits() -> None:
    """The library computes the ServerSignature of the RFC's exchange with keys made of its salt."""
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    mechanism = ScramMechanism("SCRAM-SHA-256")
    keys = mechanism.make_auth_info("pencil", 4096, salt)
    server = mechanism.make_server(lambda _: keys, s_nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    server.set_client_first("n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert server.get_server_first() == (
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    server.set_client_final(
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert server.get_server_final() == "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
