"""What the URL of a store in JetStream says."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.common.errors import InternalError
from services.store.providers.jetstream_url import parse


def test_several_servers() -> None:
    """Ports and the stream have their usual values; nothing secret is shown."""
    url = parse("nats://hopline:tell-nobody@one,two:4223/orders?replicas=3")
    assert url.servers == ("one:4222", "two:4223")
    assert (url.stream, url.replicas, url.user, url.password) == ("orders", 3, "hopline", "tell-nobody")
    assert str(url) == "nats://hopline@one:4222,two:4223/orders"
    assert url.arguments() == {
        "servers": ["nats://one:4222", "nats://two:4223"],
        "user": "hopline",
        "password": "tell-nobody",
    }
    assert (parse("nats://one").stream, parse("nats://one/").replicas) == ("HOPLINE_STORE", 0)


def test_secrets_from_files(tmp_path: Path) -> None:
    """A password and a token are read when they are needed: a file may have another one by then."""
    path = tmp_path / "secret"
    password, token = parse(f"nats://me@one?passfile={path}"), parse(f"nats://one?tokenfile={path}")
    for secret in ("first", "second"):
        path.write_text(f"{secret}\n")
        assert password.arguments()["password"] == secret
        assert token.arguments()["token"] == secret
    assert parse(f"nats://one?creds={path}").arguments()["user_credentials"] == str(path)
    path.unlink()
    for option in ("passfile", "tokenfile", "creds", "tls_ca"):
        with pytest.raises(FileNotFoundError):
            parse(f"nats://me@one?{option}={path}").arguments()


def test_addresses() -> None:
    """Of version 6 too, in brackets, with a port or without."""
    assert parse("nats://[::1],[::1]:4223,10.0.0.1:65535/x").servers == ("[::1]:4222", "[::1]:4223", "10.0.0.1:65535")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nats:///orders", "names no server"),
        ("nats://one,/orders", "names no server"),
        ("nats://one:0/a", "whose port is none"),
        ("nats://one,two:99999/a", "whose port is none"),
        ("nats://one:tell-nobody/a", "whose port is none"),
        ("nats://::1/a", "whose port is none"),
        ("nats://one/a.b", "not only letters"),
        ("nats://one/a?replicas=2", "wants other replicas than 1, 3, 5"),
        ("nats://u:tell-nobody@one/a?sslmode=x", "has the option sslmode: passfile, tokenfile, creds"),
        ("nats://u:tell-nobody@one/a?sslmode", "is no URL of a store in JetStream"),
        ("nats://u:tell-nobody@[one/a", "is no URL of a store in JetStream"),
    ],
)
def test_without_sense(text: str, words: str) -> None:
    """It is said what is wrong with it, and nothing that may be a secret."""
    with pytest.raises(InternalError, match=words) as refused:
        parse(text)
    assert "tell-nobody" not in str(refused.value)
