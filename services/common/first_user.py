"""The user of a stack that has no users yet."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.common.config import Settings
from services.common.runtime import CannotStart


@dataclass(frozen=True, slots=True)
class FirstUser:
    """An administrator."""

    name: str
    password: str = field(repr=False)
    loopback_only: bool


# The password is public, so it is good on this machine only.
GUEST = FirstUser("guest", "guest", loopback_only=True)


def first_user(settings: Settings) -> FirstUser:
    """The user that the settings name, or guest with the password that they give, else guest as everybody knows it.

    Raises CannotStart for one without a password.
    """
    password = _password(settings)
    if not settings.user and not password and settings.password_file is None:
        return GUEST
    name = settings.user or GUEST.name
    if not password:
        raise CannotStart(f"the first user, {name}, has no password: set HOPLINE_PASSWORD_FILE or HOPLINE_PASSWORD")
    return FirstUser(name, password, loopback_only=False)


def _password(settings: Settings) -> str:
    if settings.password_file is None:
        return settings.password.get_secret_value()
    try:
        return settings.password_file.read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotStart(f"HOPLINE_PASSWORD_FILE={settings.password_file}: {error}") from error
