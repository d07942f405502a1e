from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scramp import ScramClient, ScramMechanism

from services.common import plugins
from services.common.credentials import GROUP, Whose, fits, kind_named, kind_of
from services.common.errors import BrokerError, SyntaxFault
from services.common.sealing import Sealing

KINDS = plugins.names(GROUP)


@pytest.fixture
def whose(tmp_path: Path) -> Whose:
    return Whose("alice", Sealing(tmp_path / "key"))


@pytest.mark.parametrize("name", KINDS)
def test_a_kind(name: str, whose: Whose) -> None:
    """What it keeps begins as it says, is not the password, is another each time, and fits that password alone."""
    kind = kind_named(name)
    kept, again = kind.make("päss: word", whose), kind.make("päss: word", whose)
    assert kept != again
    assert kept.startswith(kind.begins)
    assert kind_of(kept) is kind
    assert "word" not in kept
    assert fits(kept, "päss: word", whose)
    for wrong in ("", "päss: Word", "päss: word\0", kept):
        assert not fits(kept, wrong, whose)


@pytest.mark.parametrize("name", KINDS)
@given(rest=st.text(max_size=40))
def test_what_is_none(name: str, rest: str) -> None:
    """With anything in place of a kept password no password fits, and nothing is raised."""
    kind = kind_named(name)
    try:
        assert not fits(kind.begins[0] + rest, "password", Whose("alice"))
    except BrokerError:
        assert name == "recoverable"


def test_an_unknown_kind() -> None:
    """A text with the beginning of no kind accepts no password."""
    for kept in ("", "password", "plain:password"):
        assert kind_of(kept) is None
        assert not fits(kept, "password", Whose("alice"))
    with pytest.raises(SyntaxFault, match="there is no kind of credentials 'plain'; there are argon2"):
        kind_named("plain")


def test_rabbitmqs_own() -> None:
    """As RabbitMQ's documentation has it, for the password test12, and in definitions.json of version 3.10."""
    kept = "rabbitmq-sha256:kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
    assert fits(kept, "test12", Whose("alice"))
    assert not fits(kept, "test13", Whose("alice"))
    salt = b"\x01\x02\x03\x04"
    old = "rabbitmq-md5:" + base64.b64encode(salt + hashlib.md5(salt + b"test12").digest()).decode()
    assert fits(old, "test12", Whose("alice"))
    assert not fits(old, "test13", Whose("alice"))


@pytest.mark.parametrize(
    "kept",
    ["rabbitmq-sha256:", "rabbitmq-sha256:AAAA", "rabbitmq-sha256:!", "rabbitmq-sha512:AAAA", "rabbitmq-md5:AAAA"],
)
def test_what_is_no_hash_of_rabbitmqs(kept: str) -> None:
    """Is refused before it is kept."""
    kind = kind_of(kept)
    assert kind
    with pytest.raises(SyntaxFault):
        kind.check(kept)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_keys_of_scram_are_keys(mechanism: str, whose: Whose) -> None:
    """A client that knows the password proves it with them, by a library of another project."""
    kind = kind_named(mechanism.lower())
    kept = kind.make("secret", whose)
    keys = kind.keys_of(kept, mechanism)
    assert keys
    assert kind.keys_of(kept, "SCRAM-SHA-224") is None
    server = ScramMechanism(mechanism).make_server(
        lambda _: (keys.salt, keys.stored_key, keys.server_key, keys.iterations)
    )
    client = ScramClient([mechanism], "alice", "secret")
    server.set_client_first(client.get_client_first())
    client.set_server_first(server.get_server_first())
    server.set_client_final(client.get_client_final())
    client.set_server_final(server.get_server_final())


def test_a_recoverable_one_is_its_users(whose: Whose) -> None:
    """What is kept of one user's password is nothing in another's record, and without the key it is nothing at all."""
    kind = kind_named("recoverable")
    kept = kind.make("secret", whose)
    assert kind.secret_of(kept, whose) == "secret"
    for other in (Whose("bob", whose.sealing), Whose("alice")):
        with pytest.raises(BrokerError):
            fits(kept, "secret", other)


def test_bcrypt_of_htpasswd(whose: Whose) -> None:
    """htpasswd -B calls it 2y, others 2b; of a long password the first 72 bytes count, as everywhere."""
    kind = kind_named("bcrypt")
    kept = kind.make("secret", whose).replace("$2b$", "$2y$", 1)
    assert kind_of(kept) is kind
    assert fits(kept, "secret", whose)
    assert not fits(kept, "wrong", whose)
    assert fits(kind.make("x" * 100, whose), "x" * 72, whose)


def test_older_kinds_do_not_last() -> None:
    """argon2 takes the place of what is guessed at more cheaply."""
    assert {name for name in KINDS if kind_named(name).lasting} == {"argon2", "recoverable"}
