"""Backups of a store engine that tests drive, and what is restored from them."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from services.common import plugins
from services.common.clock import epoch_ms
from services.store.backup.file import BackupWriter
from services.store.backup.restore import Outcome, Restore
from services.store.backup.stream import backup
from tests.support.store_house import House

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS = 4


async def back_up(house: House, path: Path) -> Path:
    """A file with all that the store has now."""
    writer = BackupWriter(path)
    async with aclosing(backup(house.engine.provider, house.engine.records)) as pieces:
        async for piece in pieces:
            writer.add(piece)
    writer.finish()
    return path


async def restore(
    file: Path, folder: Path, provider: str = "sqlite", later: int = 0, *, replace: bool = False
) -> Outcome:
    """`later` so many milliseconds from now."""
    make = plugins.load("store_providers", provider)
    return await Restore(file, folder, make, PARTITIONS, epoch_ms() + later).run(replace=replace)


async def restored(file: Path, folder: Path, later: int = 0, *, replace: bool = False) -> House:
    """A store that runs on what was restored."""
    await restore(file, folder, later=later, replace=replace)
    house = House("sqlite", folder)
    await house.start()
    return house
