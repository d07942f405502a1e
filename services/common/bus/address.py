"""The address of NATS, and the token for it."""

from __future__ import annotations

from pathlib import Path

from services.common.config import Settings
from services.common.runtime import CannotStart
from services.common.secret import nats_token


def address_file(settings: Settings) -> Path:
    """The file in which `hopline up` writes the address of the NATS server that it runs."""
    return settings.run_folder / "nats.url"


def token_for(address: str) -> str | None:
    """The token of NATS's client; None where the address has credentials of its own, `user:password@host`."""
    return None if "@" in address else nats_token() or None


def bus_address(settings: Settings) -> str:
    """From HOPLINE_NATS_URL, or from the supervisor of the same run folder; "" when there is none.

    Raises CannotStart when its file cannot be read.
    """
    if settings.nats_url:
        return settings.nats_url
    try:
        return address_file(settings).read_text().strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise CannotStart(f"cannot read where the event bus is: {error}; ask as the user who runs the stack") from error
