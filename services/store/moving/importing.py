"""Imports a file into an empty provider: its history departs from that of the source, so it is the next generation.

For why, and which numbers go up, see `services/store/backup/generation.py`. A restore does the same for a folder, and
puts the former files aside; an import goes into any provider that is empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from services.common.clients.routers import ROLE as ROUTER
from services.common.partition import lease_name
from services.common.restored import RECORD_KEY, RECORD_KIND, Restored
from services.store.backup.file import BackupReader
from services.store.backup.generation import Generation, Given, given_of
from services.store.backup.manifest import Manifest
from services.store.backup.restore import verified
from services.store.backup.wire import from_piece
from services.store.moving.into import Into, Moved, Pieces
from services.store.moving.progress import Progress
from services.store.moving.site import Site
from services.store.provider import Changes, RecordRow


@dataclass(frozen=True, slots=True)
class Imported:
    """What was in the file, and what is in the destination."""

    manifest: Manifest
    restored: Restored
    moved: Moved


async def import_file(file: Path, destination: Site, partitions: int, now_ms: int, told: Progress) -> Imported:
    """Imports the file. Nothing is written before the whole file was verified.

    `partitions` is the stack's number of them; `now_ms` by the machine's clock. Raises PreconditionFailed,
    InternalError or ResourceError.
    """
    told.phase("reading the file")
    manifest = verified(file, now_ms)
    given, running = _read(file, manifest)
    seconds = max(now_ms - manifest.time_ms, 0) / 1000
    generation = Generation(given, [ROUTER, *map(lease_name, range(partitions))], seconds)
    restored = Restored(generation=generation.number, backup_ms=manifest.time_ms, restored_ms=now_ms)
    async with destination.destination() as provider:
        into = Into(provider, f"the file {file.name}", told)
        moved = await into.run(_pieces(file), _last(generation, restored, running))
    return Imported(manifest, restored, moved)


def _read(file: Path, manifest: Manifest) -> tuple[Given, int]:
    """The numbers that the store had given out, and how long it had run."""
    running = 0

    def pieces(reader: BackupReader) -> Iterator[Changes]:
        nonlocal running
        for piece in reader.pieces():
            running = max(running, piece.running)
            yield from_piece(piece)

    with BackupReader(file) as reader:
        return given_of(pieces(reader), manifest.generation), running


async def _pieces(file: Path) -> Pieces:
    """The pieces of the file, without leases."""
    with BackupReader(file) as reader:
        for piece in reader.pieces():
            piece.ClearField("leases")
            yield piece


def _last(generation: Generation, restored: Restored, running: int) -> Changes:
    last = generation.last(running)
    last.records[RECORD_KIND, RECORD_KEY] = RecordRow(RECORD_KIND, RECORD_KEY, restored.model_dump_json().encode(), 0)
    return last
