"""Where the key lies that secrets are encrypted under."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.common.config import Settings
from services.common.sealing import CannotOpen, Sealing
from services.common.secrets_key import KeyPlace, secrets_note


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder."""
    folder = tmp_path / "configuration"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    return folder


def of(data: Path) -> Settings:
    return Settings(data=data)


def test_it_is_not_beside_what_it_encrypts(configuration: Path, tmp_path: Path) -> None:
    """It is in the user's configuration folder, readable by its owner only, and not in a copy of the data folder."""
    settings = of(tmp_path / "data")
    sealed = Sealing.of(settings).seal("secret", "place")
    file = KeyPlace.of(settings).find()
    assert (file.parent, file.stat().st_mode & 0o777) == (configuration / "hopline" / "keys", 0o600)
    key = file.read_text().strip()
    assert not any(key in each.read_text() for each in settings.data.rglob("*") if each.is_file())
    assert Sealing.of(settings).open(sealed, "place") == "secret"
    assert secrets_note(settings) == {}


@pytest.mark.usefixtures("configuration")
def test_each_data_folder_has_its_own(tmp_path: Path) -> None:
    """Two stacks of one user have keys of their own; a folder that is moved keeps its key."""
    one, two = of(tmp_path / "one"), of(tmp_path / "two")
    sealed = Sealing.of(one).seal("secret", "place")
    Sealing.of(two).seal("another", "place")
    with pytest.raises(CannotOpen, match="under another key"):
        Sealing.of(two).open(sealed, "place")
    moved = of(one.data.rename(tmp_path / "moved"))
    assert Sealing.of(moved).open(sealed, "place") == "secret"


@pytest.mark.usefixtures("configuration")
def test_one_from_before(tmp_path: Path) -> None:
    """Is found where it was, and goes on to be used; health says where it lies, and what to do."""
    settings = of(tmp_path / "data")
    former = Sealing(settings.data / "keys" / "secrets").seal("former", "place")
    sealing = Sealing.of(settings)
    sealing.seal("newer", "place")
    assert sealing.open(former, "place") == "former"
    assert [each.name for each in (settings.data / "keys").iterdir()] == ["secrets"]
    assert "HOPLINE_SECRETS_KEY_FILE" in secrets_note(settings)["secrets"]
    moved = (settings.data / "keys" / "secrets").rename(tmp_path / "elsewhere")
    apart = settings.model_copy(update={"secrets_key_file": moved})
    assert (Sealing.of(apart).open(former, "place"), secrets_note(apart)) == ("former", {})


def test_no_folder_that_can_be_written_to(configuration: Path, tmp_path: Path) -> None:
    """It is made in the data folder then, which health says."""
    configuration.write_text("a file")
    settings = of(tmp_path / "data")
    sealed = Sealing.of(settings).seal("secret", "place")
    assert Sealing.of(settings).open(sealed, "place") == "secret"
    assert "secrets" in secrets_note(settings)


def test_a_setting_comes_first(configuration: Path, tmp_path: Path) -> None:
    """The key is there, or nowhere."""
    settings = Settings(data=tmp_path / "data", secrets_key_file=tmp_path / "apart" / "keys")
    Sealing.of(settings).seal("secret", "place")
    assert (tmp_path / "apart" / "keys").exists()
    assert not configuration.exists()
    assert not settings.data.exists()


def test_users_without_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have it in .config of their home; root has it in /etc."""
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data" / "keys").mkdir(parents=True)
    (tmp_path / "data" / "keys" / "id").write_text("7\n")
    for user, folder in ((1000, tmp_path / ".config" / "hopline"), (0, Path("/etc/hopline"))):
        monkeypatch.setattr("os.geteuid", lambda user=user: user)
        assert KeyPlace(None, tmp_path / "data").find() == folder / "keys" / "7"
