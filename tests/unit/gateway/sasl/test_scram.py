"""SCRAM as the broker speaks it; the client's side is scramp's, or written out."""

from __future__ import annotations

import gc
import weakref
from base64 import b64decode, b64encode

import pytest
import scramp.core
from hypothesis import example, given
from hypothesis import strategies as st
from scramp import ScramClient, ScramException, ScramMechanism

from services.common.authentication.claims import Proof
from services.common.authentication.disguise import keys_of_nobody
from services.common.authentication.refusal import TooManyFailures
from services.common.errors import SyntaxFault
from services.common.scram import MECHANISMS, Keys, make_keys
from services.gateway.sasl import Challenge, Mechanism, mechanism_named
from services.gateway.sasl.scram import Scram, ScramSha1, ScramSha256

ALICE = make_keys("secret", MECHANISMS)
SECRET = b"of this test"


class Directory:
    """Knows alice, and the names that it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def keys_of(self, user: str, mechanism: str) -> Keys:
        self.asked.append((user, mechanism))
        if user == "mallory":
            raise TooManyFailures("wait")
        return ALICE[mechanism] if user == "alice" else keys_of_nobody(SECRET, user, mechanism)


def _client(mechanism: str, user: str = "alice", password: str = "secret") -> ScramClient:
    return ScramClient([mechanism], user, password)


def _talk(server: Mechanism, client: ScramClient) -> Proof:
    """Up to the client's proof."""
    challenge = server.respond(client.get_client_first().encode())
    assert isinstance(challenge, Challenge)
    client.set_server_first(challenge.data.decode())
    proof = server.respond(client.get_client_final().encode())
    assert isinstance(proof, Proof)
    return proof


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_the_right_password_proves_it(mechanism: str) -> None:
    """Two messages of a client of another project; and that one accepts the broker's proof."""
    directory, client = Directory(), _client(mechanism)
    proof = _talk(mechanism_named(mechanism, directory), client)
    assert (proof.user, proof.mechanism, proof.keys, proof.fits) == ("alice", mechanism, ALICE[mechanism], True)
    client.set_server_final(proof.final.decode())
    assert directory.asked == [("alice", mechanism)]


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
@pytest.mark.parametrize(("user", "password"), [("alice", "Secret"), ("bob", "secret"), ("bob", "x")])
def test_a_wrong_password_proves_nothing(mechanism: str, user: str, password: str) -> None:
    """A wrong password and a name without a user come as far as the right one, and no proof comes back."""
    proof = _talk(mechanism_named(mechanism, Directory()), _client(mechanism, user, password))
    assert (proof.user, proof.fits, proof.final) == (user, False, b"")


def _rfc(mechanism: type[Scram], salt: str, monkeypatch: pytest.MonkeyPatch, nonce: str) -> Mechanism:
    class Rfc:
        def keys_of(self, user: str, name: str) -> Keys:
            assert user == "user"
            made = ScramMechanism(name).make_auth_info("pencil", 4096, b64decode(salt))
            return Keys(salt=made[0], stored_key=made[1], server_key=made[2], iterations=made[3])

    monkeypatch.setattr(scramp.core.Nonce, "create", classmethod(lambda kind: kind(nonce)))
    return mechanism(Rfc())


@pytest.mark.specification("RFC 5802, section 5")
def test_the_example_of_sha_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exchange of the RFC, letter for letter."""
    server = _rfc(ScramSha1, "QSXCR+Q6sek8bf92", monkeypatch, "3rfcNHYJY1ZVvWVs7j")
    assert server.respond(b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL") == Challenge(
        b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096"
    )
    proof = server.respond(b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=")
    assert isinstance(proof, Proof)
    assert (proof.fits, proof.final) == (True, b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=")


@pytest.mark.specification("RFC 7677, section 3")
def test_the_example_of_sha_256(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exchange of the RFC, letter for letter."""
    server = _rfc(ScramSha256, "W22ZaJ0SNY7soEsUEjb6gQ==", monkeypatch, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    assert server.respond(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == Challenge(
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    proof = server.respond(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert isinstance(proof, Proof)
    assert (proof.fits, proof.final) == (True, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_a_name_without_a_user_has_the_same_salt_each_time() -> None:
    """Asking twice does not reveal a name without a user by its salt; another stack has other salts."""
    asked = [keys_of_nobody(SECRET, "bob", "SCRAM-SHA-256") for _ in range(2)]
    assert asked[0] == asked[1]
    salts = [
        keys_of_nobody(*about).salt
        for about in [
            (SECRET, "bob", "SCRAM-SHA-256"),
            (SECRET, "bob", "SCRAM-SHA-512"),
            (SECRET, "bo", "SCRAM-SHA-256"),
            (b"another", "bob", "SCRAM-SHA-256"),
        ]
    ]
    assert len(set(salts)) == 4


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_a_name_without_a_user_looks_like_a_user(mechanism: str) -> None:
    """Salt and keys are as long, and the count is the same."""
    ours, nobodys = ALICE[mechanism], keys_of_nobody(SECRET, "bob", mechanism)
    assert nobodys.iterations == ours.iterations
    for part in ("salt", "stored_key", "server_key"):
        assert len(getattr(nobodys, part)) == len(getattr(ours, part))


@pytest.mark.specification("RFC 5802, section 5.1")
def test_names_are_written_out() -> None:
    """Commas and equals signs are escaped, names are prepared: the directory is asked for what is meant."""
    for written, meant in [("n=a=2Cb=3Dc", "a,b=c"), ("n=al\u00adice", "alice"), ("n=\u2168", "IX")]:
        directory = Directory()
        ScramSha256(directory).respond(f"n,,{written},r=abc".encode())
        assert directory.asked == [(meant, "SCRAM-SHA-256")]


@pytest.mark.specification("RFC 5802, section 6")
def test_channel_binding() -> None:
    """A client may say that it could bind the channel; one that wants to is refused, and told why."""
    server = ScramSha256(Directory())
    challenge = server.respond(b"y,,n=alice,r=abc")
    assert isinstance(challenge, Challenge)
    for wanted in (b"p=tls-unique,,n=alice,r=abc", b"p=tls-exporter,,n=alice,r=abc", b"p=?,,n=alice,r=abc"):
        with pytest.raises(SyntaxFault, match="channel binding is not offered"):
            ScramSha256(Directory()).respond(wanted)


_FIRST = [
    b"",
    b"\0alice\0secret",
    b"n",
    b"n,,",
    b"n,,n=alice",
    b"n,,r=abc",
    b"n,,n=,r=abc",
    b"n,,n=alice,r=",
    b"n,,n=al=ice,r=abc",
    b"n,,n=alice,r=\xff",
    b"n,,n=a\x07,r=abc",
    b"n,a=bob,n=alice,r=abc",
    b"x,,n=alice,r=abc",
    b"n,,m=x,n=alice,r=abc",
    b"n,,n=alice,r=abc" + b"d" * 500,
]


@pytest.mark.parametrize("message", _FIRST)
def test_a_first_message_that_is_none(message: bytes) -> None:
    """What cannot be read, acts for another user or wants what is not known is a fault of syntax."""
    with pytest.raises(SyntaxFault, match="SCRAM-SHA-256: "):
        ScramSha256(Directory()).respond(message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"c=biws",
        b"c=biws,r={nonce}",
        b"c=?,r={nonce},p=YQ==",
        b"c=eSws,r={nonce},p=YQ==",
        b"c=biws,r={nonce}x,p=YQ==",
        b"c=biws,r=abc,p=YQ==",
        b"c=biws,r={nonce},p=?",
        b"c=biws,r={nonce},p=\xff",
    ],
)
def test_a_last_message_that_is_none(message: bytes) -> None:
    """Another nonce, another channel, or no message: a fault of syntax, and no proof that is to be judged."""
    server = ScramSha256(Directory())
    challenge = server.respond(b"n,,n=alice,r=abc")
    assert isinstance(challenge, Challenge)
    nonce = challenge.data.split(b",")[0][2:]
    with pytest.raises(SyntaxFault):
        server.respond(message.replace(b"{nonce}", nonce))


@pytest.mark.parametrize("proof", [b"", b"short", b"x" * 31, b"x" * 32, b"x" * 33])
def test_a_proof_of_any_length_is_a_wrong_one(proof: bytes) -> None:
    """Any name counts as an attempt; but none at all is no message."""
    server = ScramSha256(Directory())
    challenge = server.respond(b"n,,n=alice,r=abc")
    assert isinstance(challenge, Challenge)
    nonce = challenge.data.split(b",")[0][2:]
    message = b"c=biws,r=" + nonce + b",p=" + b64encode(proof)
    if proof:
        claim = server.respond(message)
        assert isinstance(claim, Proof)
        assert not claim.fits
    else:
        with pytest.raises(SyntaxFault):
            server.respond(message)


def test_an_exchange_ends() -> None:
    """After the proof there is nothing more to say, right or wrong."""
    for password in ("secret", "wrong"):
        server = mechanism_named("SCRAM-SHA-256", Directory())
        _talk(server, _client("SCRAM-SHA-256", password=password))
        for more in (b"", b"n,,n=alice,r=abc", b"c=biws,r=abc,p=YQ=="):
            with pytest.raises(SyntaxFault):
                server.respond(more)


def test_a_directory_that_refuses_is_heard() -> None:
    """A client that has failed too often is told so, and not that a message cannot be read."""
    with pytest.raises(TooManyFailures):
        ScramSha256(Directory()).respond(b"n,,n=mallory,r=abc")


def test_nothing_stays_of_an_exchange() -> None:
    """It is gone with its connection, without a collection of garbage: those are rare."""
    server = mechanism_named("SCRAM-SHA-256", Directory())
    _talk(server, _client("SCRAM-SHA-256"))
    gc.disable()
    try:
        reference = weakref.ref(server)
        del server
        assert reference() is None
    finally:
        gc.enable()


_WORDS = st.sampled_from(
    [
        "n",
        "y",
        "p",
        "c",
        "r",
        "=",
        ",",
        "n,,n=alice,r=abc",
        "c=biws",
        "p=YQ==",
        "a=",
        "m=",
        "=2C",
        "=3D",
        "e=",
        "\u0627",
    ]
)
_MESSAGES = st.one_of(
    st.binary(max_size=80),
    st.lists(st.one_of(_WORDS, st.text(max_size=3)), max_size=12).map(lambda w: "".join(w).encode()),
)


@pytest.mark.fuzz
@given(st.lists(_MESSAGES, max_size=4), st.booleans())
@example([b"n,,n=alice,r=abc", b"c=biws,r=abc,p=YQ=="], True)
def test_whatever_comes(messages: list[bytes], begun: bool) -> None:
    """Challenges and faults of syntax, nothing else is raised, and no client is let in."""
    server = ScramSha256(Directory())
    if begun:
        server.respond(b"n,,n=alice,r=abc")
    for message in messages:
        try:
            answer = server.respond(message)
        except SyntaxFault:
            continue
        assert isinstance(answer, Challenge) or not answer.fits


@pytest.mark.fuzz
@given(st.integers(0, 400), st.integers(1, 255))
def test_a_byte_that_changes(position: int, change: int) -> None:
    """With any byte of the client's messages changed, no proof fits. The last letter of the proof's base64
    has bits that say nothing."""
    server, client = ScramSha256(Directory()), _client("SCRAM-SHA-256")
    first = client.get_client_first().encode()
    try:
        challenge = server.respond(_changed(first, position, change))
        assert isinstance(challenge, Challenge)
        client.set_server_first(challenge.data.decode())
        final = client.get_client_final().encode()
        answer = server.respond(_changed(final, position - len(first), change))
    except (SyntaxFault, ScramException):
        return
    assert isinstance(answer, Proof)
    if position != len(first) + len(final) - 2:
        assert answer.fits is (position >= len(first) + len(final))


def _changed(message: bytes, position: int, change: int) -> bytes:
    if not 0 <= position < len(message):
        return message
    return message[:position] + bytes((message[position] ^ change,)) + message[position + 1 :]
