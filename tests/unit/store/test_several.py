"""A provider for one process refuses several, and says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.common.config import Settings
from services.common.errors import InternalError
from services.common.runtime import CannotStart
from services.store.service import Service


@pytest.mark.parametrize("provider", ["sqlite", "memory"])
async def test_they_are_told_to_it(tmp_path: Path, provider: str) -> None:
    """By the number of them."""
    settings = Settings(data=tmp_path, store_provider=provider, store_processes=2)
    with pytest.raises(CannotStart, match=rf"{provider} keeps everything in one process: set it to 1, or .*STORE_URL="):
        Service(settings, name="store-1")


@pytest.mark.parametrize("provider", ["sqlite", "memory"])
async def test_they_meet(tmp_path: Path, provider: str) -> None:
    """Or by their folder."""
    settings = Settings(data=tmp_path, store_provider=provider)
    first = Service(settings)
    await first.start()
    with pytest.raises(InternalError, match=r"another store runs on .*: stop it, .* only on PostgreSQL or NATS"):
        await Service(settings).start()
    await first.stop()
