from __future__ import annotations

from pathlib import Path

import pytest

from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.common.first_user import GUEST, first_user
from services.common.runtime import CannotStart
from services.common.users import User, verify_password
from services.mgmt.users import Users
from tests.support.fake_store import FakeStore


def test_guest_by_default() -> None:
    """Without a name in the settings it is guest, who may sign in from this machine only."""
    assert first_user(Settings()) is GUEST
    assert GUEST.loopback_only


def test_password_from_file(tmp_path: Path) -> None:
    """A secret that is mounted as a file is read without its line end, and wins over a variable."""
    file = tmp_path / "password"
    file.write_text(" from a file \n")
    first = first_user(Settings(user="alice", password="other", password_file=file))
    assert (first.name, first.password, first.loopback_only) == ("alice", " from a file ", False)


@pytest.mark.parametrize("from_file", [False, True])
def test_a_password_alone(tmp_path: Path, from_file: bool) -> None:
    """It is guest's, and the one that everybody knows is not."""
    (tmp_path / "password").write_text("mine\n")
    first = first_user(Settings(password_file=tmp_path / "password") if from_file else Settings(password="mine"))
    assert (first.name, first.password, first.loopback_only) == ("guest", "mine", False)


def test_an_empty_file_alone(tmp_path: Path) -> None:
    """It is no password, and does not stand for guest's."""
    (tmp_path / "password").touch()
    with pytest.raises(CannotStart, match="guest, has no password"):
        first_user(Settings(password_file=tmp_path / "password"))


@pytest.mark.parametrize("password_file", [None, Path("/nowhere/password")])
def test_no_password(password_file: Path | None) -> None:
    """A user whose password is missing is refused before anything serves."""
    with pytest.raises(CannotStart, match="PASSWORD"):
        first_user(Settings(user="alice", password_file=password_file))


def test_password_is_not_shown() -> None:
    """Neither settings nor the user tell the password to a log."""
    settings = Settings(user="alice", password="open sesame")
    assert "sesame" not in f"{settings!r}{first_user(settings)!r}"


async def test_first_user_of_the_settings(settings: Settings, store: FakeStore) -> None:
    """The named user is an administrator from everywhere, and there is no guest beside it."""
    connected = StoreClient(settings.address_of("store"))
    await Users(connected).seed(first_user(Settings(user="alice", password="secret")))
    await connected.close()
    assert [key for kind, key in store.records if kind == "user"] == ["alice"]
    alice = User.from_json(store.records["user", "alice"].value)
    assert verify_password(alice, "secret")
    assert (alice.tags, alice.loopback_only) == (("administrator",), False)
