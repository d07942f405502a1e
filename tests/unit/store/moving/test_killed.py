"""The command itself, killed for real while it writes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from services.store.moving.site import Site, site
from services.store.provider import Changes, EntryRow
from tests.support.store_house import content, entries

_PIECES = 60
_SIZE = 1 << 20  # of a content


async def _fill(where: Site) -> None:
    async with where.destination() as provider:
        await provider.begin_incarnation()
        for number in range(_PIECES):
            batch = entries(number, 4)
            row = EntryRow(batch.id, batch.partition, batch.content, batch.count, batch.entries)
            columns = content(number, 4, _SIZE // 4).columns
            await provider.commit(Changes(contents={number: columns}, entries={number: row}))


async def _copy(source: Site, destination: Site) -> asyncio.subprocess.Process:
    command = ("-m", "services", "store", "copy", str(source), str(destination))
    return await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)


async def test_killed(place: Callable[[str], Site], tmp_path: Path) -> None:
    """Killed as soon as some of it is on disk, and started again, it goes on, and all is there."""
    source, destination = place("sqlite"), site(str(tmp_path / "new"))
    await _fill(source)
    first = await _copy(source, destination)
    log = tmp_path / "new" / "hopline.db-wal"
    async with asyncio.timeout(60):
        while not log.exists() or log.stat().st_size < 4 * _SIZE:
            await asyncio.sleep(0.005)
    first.kill()
    assert await first.wait() == -9
    said, _ = await (await _copy(source, destination)).communicate()
    before, _, resumed = said.decode().partition(": checked, after ")
    assert before == f"{4 * _PIECES} messages in 1 queues, 0 records"
    assert 2 < int(resumed.split()[0]) <= _PIECES
