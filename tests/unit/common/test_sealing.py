from __future__ import annotations

import base64
import secrets
from pathlib import Path

import pytest

from services.common.sealing import CannotOpen, Sealing


def test_what_is_sealed_is_opened(tmp_path: Path) -> None:
    """Opened with the key, which is made where there is none, readable by its owner only; never the same text twice."""
    file = tmp_path / "keys" / "secrets"
    sealed = [Sealing(file).seal("secret", "a place") for _ in range(2)]
    assert sealed[0] != sealed[1]
    assert all("secret" not in each for each in sealed)
    assert [Sealing(file).open(each, "a place") for each in sealed] == ["secret"] * 2
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_it_is_bound_to_its_place(tmp_path: Path) -> None:
    """It cannot be read as another's, nor when a bit of it is another one."""
    sealing = Sealing(tmp_path / "key")
    sealed = sealing.seal("secret", "a place")
    data = bytearray(base64.b64decode(sealed.removeprefix("1:")))
    data[-1] ^= 1
    other = "1:" + base64.b64encode(data).decode()
    for text, place in (
        (sealed, "another"),
        (other, "a place"),
        ("secret", "a place"),
        ("1:!", "a place"),
        ("1:", "x"),
    ):
        with pytest.raises(CannotOpen):
            sealing.open(text, place)
    assert sealing.open(sealed, "a place") == "secret"


def test_keys_change(tmp_path: Path) -> None:
    """A new one is put before the others, which open what they have sealed, until they are taken away."""
    file = tmp_path / "key"
    former = Sealing(file).seal("former", "place")
    new = base64.b64encode(secrets.token_bytes(32)).decode()
    file.write_text(f"{new}\n{file.read_text()}")
    sealing = Sealing(file)
    newer = sealing.seal("newer", "place")
    assert [sealing.open(each, "place") for each in (former, newer)] == ["former", "newer"]
    file.write_text(f"{new}\n")
    assert Sealing(file).open(newer, "place") == "newer"
    with pytest.raises(CannotOpen, match="under another key"):
        Sealing(file).open(former, "place")


@pytest.mark.parametrize("text", ["", "short", "c2hvcnQ=", "!" * 44])
def test_a_file_without_a_key(tmp_path: Path, text: str) -> None:
    """Is named, and nothing is encrypted under what is none."""
    file = tmp_path / "key"
    file.write_text(text)
    with pytest.raises(CannotOpen, match="HOPLINE_SECRETS_KEY_FILE"):
        Sealing(file).seal("secret", "place")


def test_reading_makes_no_key(tmp_path: Path) -> None:
    """A process that cannot read a secret must not seem to have its key."""
    sealed = Sealing(tmp_path / "one").seal("secret", "place")
    with pytest.raises(CannotOpen):
        Sealing(tmp_path / "two").open(sealed, "place")
    assert not (tmp_path / "two").exists()
