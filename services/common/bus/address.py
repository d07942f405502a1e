"""Where NATS is."""

from __future__ import annotations

from pathlib import Path

from services.common.config import Settings


def address_file(settings: Settings) -> Path:
    """Where `hopline up` writes down the address of the NATS server that it runs."""
    return settings.run_folder / "nats.url"


def bus_address(settings: Settings) -> str:
    """As HOPLINE_NATS_URL says, or as the supervisor on the same run folder does; "" when there is none."""
    if settings.nats_url:
        return settings.nats_url
    try:
        return address_file(settings).read_text().strip()
    except FileNotFoundError:
        return ""
