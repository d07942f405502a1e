"""The place of the key that encrypts secrets at rest: not the data folder, so that a copy of that folder does not open
them. Each data folder has a key of its own, and a file that says which.

The place is HOPLINE_SECRETS_KEY_FILE; without it the data folder, if a key of an older release is there; else the
configuration folder of the user that runs the stack. If that folder cannot be written to, the key is made in the data
folder.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from services.common.config import Settings
from services.common.made_once import make_once

SETTING = "HOPLINE_SECRETS_KEY_FILE"
_ADMINISTRATOR = Path("/etc/hopline")


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """The place of one stack's key; `given` is the setting."""

    given: Path | None
    data: Path

    @classmethod
    def of(cls, settings: Settings) -> KeyPlace:
        return cls(settings.secrets_key_file, settings.data)

    def find(self) -> Path:
        """The file of the key, or where it would be made. Raises OSError."""
        if self.given:
            return self.given
        return self._beside if self._beside.exists() else self._apart() or self._beside

    def make(self, key: str) -> Path:
        """Writes the key, unless there is one. Raises OSError."""
        if self.given or self._beside.exists():
            return self._made(self.find(), key)
        try:
            make_once(self._which, secrets.token_hex(8))
            return self._made(self.find(), key)
        except OSError:
            return self._made(self._beside, key)

    def is_beside(self) -> bool:
        """Whether the key exists and lies in the same folder as what it encrypts."""
        try:
            file = self.find()
            return file.exists() and file.resolve().is_relative_to(self.data.resolve())
        except OSError:
            return False

    @staticmethod
    def _made(file: Path, key: str) -> Path:
        if not file.exists():
            make_once(file, key)
        return file

    @property
    def _beside(self) -> Path:
        return self.data / "keys" / "secrets"

    @property
    def _which(self) -> Path:
        return self.data / "keys" / "id"

    def _apart(self) -> Path | None:
        folder = _folder_of_user()
        if folder is None or not self._which.exists():
            return None
        return folder / "keys" / self._which.read_text().strip()


def secrets_note(settings: Settings) -> dict[str, str]:
    """A note for the health check; empty where the key lies apart from the data."""
    place = KeyPlace.of(settings)
    if not place.is_beside():
        return {}
    where = place.find()
    text = f"the key lies beside what it encrypts, in {where}: move it out of {settings.data}, and set {SETTING} to it"
    return {"secrets": text}


def _folder_of_user() -> Path | None:
    if named := os.environ.get("XDG_CONFIG_HOME"):
        return Path(named) / "hopline" if Path(named).is_absolute() else None
    if os.geteuid() == 0:
        return _ADMINISTRATOR
    try:
        return Path.home() / ".config" / "hopline"
    except RuntimeError:  # a user without a home
        return None
