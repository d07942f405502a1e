"""Exports a store that does not run to a file, as a backup does with a store that runs.

Killed and done again it continues: what is in the file already is compared instead of written, and if the store has
changed since, the file is begun again.
"""

from __future__ import annotations

from contextlib import aclosing, closing
from dataclasses import dataclass
from pathlib import Path

from services.common.clock import epoch_ms
from services.common.errors import InternalError
from services.common.restored import RECORD_KEY, RECORD_KIND, Restored
from services.rpc.store_pb2 import BackupHead, BackupPiece
from services.store.backup.continued import Changed, ContinuedWriter
from services.store.backup.file import BackupReader
from services.store.backup.manifest import Manifest
from services.store.moving.copy import pieces_of
from services.store.moving.progress import Progress
from services.store.moving.site import Site
from services.store.moving.tally import Tally
from services.store.provider import Provider


@dataclass(frozen=True, slots=True)
class Exported:
    """What the file has; `resumed` bytes of it were there before."""

    manifest: Manifest
    resumed: int


async def export(source: Site, file: Path, told: Progress) -> Exported:
    """Exports to `file`, which must not exist. Raises PreconditionFailed, InternalError or ResourceError."""
    async with source.source() as provider:
        try:
            return await _export(provider, ContinuedWriter(file), file, told)
        except Changed:
            return await _export(provider, ContinuedWriter(file, anew=True), file, told)


async def _export(provider: Provider, writer: ContinuedWriter, file: Path, told: Progress) -> Exported:
    told.phase("exporting")
    with closing(writer), closing(Tally()) as tally:
        writer.add(BackupPiece(head=writer.head or await _head(provider)))
        async with aclosing(pieces_of(provider)) as pieces:
            async for piece in pieces:
                writer.add(piece)
                tally.add(piece)
                told.step(piece.ByteSize())
        manifest = writer.finish()
        _check(file, tally, told)
        return Exported(manifest, writer.resumed)


async def _head(provider: Provider) -> BackupHead:
    rows = [row for row in await provider.records() if (row.kind, row.key) == (RECORD_KIND, RECORD_KEY)]
    generation = Restored.model_validate_json(rows[0].value).generation if rows else 1
    return BackupHead(time_ms=epoch_ms(), generation=generation)


def _check(file: Path, tally: Tally, told: Progress) -> None:
    told.phase("checking", file.stat().st_size)
    with closing(Tally()) as found, BackupReader(file) as reader:
        for piece in reader.pieces():
            found.add(piece)
            told.step(piece.ByteSize())
        if wrong := tally.differences(found):
            raise InternalError(f"{file} is not what the store has: {'; '.join(wrong[:3])}")
