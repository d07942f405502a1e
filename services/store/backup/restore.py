"""Makes a data folder of a backup: builds it beside the present one, checks it, then puts it in place in one go.

Nothing is written before the whole backup was verified. The former files are put aside, and none of them is deleted.
The store does not start on a folder in which a restore has ended half-way; a restore done again begins with the former
files.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import structlog

from services.common.clients.routers import ROLE as ROUTER
from services.common.errors import BrokerError, InternalError, PreconditionFailed, ResourceError
from services.common.partition import lease_name
from services.common.restored import RECORD_KEY, RECORD_KIND, Restored, read, utc
from services.rpc.store_pb2 import Record
from services.store.backup.file import BackupReader, verify
from services.store.backup.generation import Generation, Given, given_of, without_given
from services.store.backup.manifest import Count, Manifest
from services.store.backup.store_folder import StoreFolder
from services.store.backup.wire import from_piece, to_piece
from services.store.choice import CONFIGURATION
from services.store.folder import DataFolder
from services.store.moving.mark import mark_in
from services.store.provider import Provider, RecordRow

Make = Callable[[Path], Provider]

_CLOCKS_APART_MS = 600_000  # at most, of two machines

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was restored, and where the former files of the folder are."""

    manifest: Manifest
    restored: Restored
    aside: Path | None


class Restore:
    """One backup, to be restored into one folder."""

    def __init__(self, file: Path, folder: Path, make: Make, partitions: int, now_ms: int) -> None:
        """`make` makes the provider; `partitions` is the stack's number of them; `now_ms` by the machine's clock."""
        self._file = file
        self._folder = folder
        self._make = make
        self._leases = [ROUTER, *map(lease_name, range(partitions))]
        self._now_ms = now_ms
        self._files = make(folder).files()
        self._place = StoreFolder(folder, self._files)

    async def run(self, *, replace: bool) -> Outcome:
        """Restores. Raises PreconditionFailed, InternalError or ResourceError; then the folder is as it was.

        `replace`: files of a store in the folder are put aside.
        """
        manifest = self._verified()
        with DataFolder(self._folder).held(unfinished=True):
            self._recover()
            await self._insist_on_no_half()
            present = self._place.present()
            if present and not replace:
                text = f"{self._folder} has a store already ({present[0]}): --replace puts that aside"
                raise PreconditionFailed(text)
            before = await self._given_before() if present else Given()
            return await self._restore(manifest, before)

    def _recover(self) -> None:
        try:
            self._place.recover()
        except OSError as failure:
            raise ResourceError(f"cannot undo the restore that has ended half-way: {failure}") from failure

    def _verified(self) -> Manifest:
        if not self._files:
            text = "set HOPLINE_STORE_PROVIDER=sqlite, and no HOPLINE_STORE_URL"
            raise PreconditionFailed(f"this store provider keeps nothing in a folder: {text}")
        return verified(self._file, self._now_ms)

    async def _insist_on_no_half(self) -> None:
        """The rest of it is elsewhere, and would be of no use beside a whole store."""
        for place in (self._folder, self._folder / CONFIGURATION):
            if any((place / name).exists() for name in self._files) and (holds := await self._half_in(place)):
                raise PreconditionFailed(
                    f"{place} has only the {holds} of a store whose configuration is apart: put it aside, and make "
                    "both of the backup with `hopline store import FILE TO --configuration URL` (docs/backups.md)"
                )

    async def _half_in(self, place: Path) -> str:
        try:
            rows = (await self._make(place).given()).records.values()
        except Exception:  # noqa: BLE001 - as below
            return ""
        mark = mark_in(row for row in rows if row is not None)
        return mark.holds if mark else ""

    async def _given_before(self) -> Given:
        """The numbers given out by the store in the folder, if it can be read: it may know later ones."""
        try:
            found = await self._make(self._folder).given()
            epochs = {row.name: row.epoch for row in found.leases.values()}
            rows = [row for row in found.records.values() if row is not None]
            restored = read(Record(kind=row.kind, key=row.key, value=row.value) for row in rows)
            return Given(restored.generation if restored else 1, found.origin, found.incarnation, epochs)
        except Exception as fault:  # noqa: BLE001 - it may be the very reason for the restore
            what = "what is there cannot be read, and is put aside as it is"
            log.warning(what, reason=repr(fault), do="nothing, if that is why it is restored")
            return Given()

    async def _restore(self, manifest: Manifest, before: Given) -> Outcome:
        given = self._given(manifest).and_of(before)
        seconds = max(self._now_ms - manifest.time_ms, 0) / 1000
        generation = Generation(given, self._leases, seconds)
        restored = Restored(generation=generation.number, backup_ms=manifest.time_ms, restored_ms=self._now_ms)
        new = self._place.building(secrets.token_hex(4))
        try:
            new.mkdir(mode=0o700)
            await self._build(self._make(new), generation, restored)
            await _check(self._make(new), manifest)
            return Outcome(manifest, restored, self._place.put(new, f"replaced-{self._now_ms}"))
        except BrokerError:
            raise
        except Exception as failure:
            raise ResourceError(f"cannot restore into {self._folder}: {failure}") from failure
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def _given(self, manifest: Manifest) -> Given:
        with BackupReader(self._file) as reader:
            return given_of(map(from_piece, reader.pieces()), manifest.generation)

    async def _build(self, provider: Provider, generation: Generation, restored: Restored) -> None:
        async with _opened(provider):
            running = 0
            with BackupReader(self._file) as reader:
                for piece in reader.pieces():
                    running = max(running, piece.running)
                    if changes := without_given(from_piece(piece)):
                        await provider.commit(changes)
            last = generation.last(running)
            row = RecordRow(RECORD_KIND, RECORD_KEY, restored.model_dump_json().encode(), 0)
            last.records[RECORD_KIND, RECORD_KEY] = row
            await provider.commit(last)


def verified(file: Path, now_ms: int) -> Manifest:
    """Verifies the file, and gives its manifest. Raises PreconditionFailed, also where the clock must be wrong."""
    manifest = verify(file)
    if manifest.time_ms > now_ms + _CLOCKS_APART_MS:
        # Its age bounds how many numbers can have been given out since.
        text = f"{file} is of {utc(manifest.time_ms)}, and here it is {utc(now_ms)}: set the clock"
        raise PreconditionFailed(text)
    return manifest


async def _check(provider: Provider, manifest: Manifest) -> None:
    """Opens the new store again, and checks that it has what was written."""
    with closing(Count()) as count:
        async with _opened(provider):
            async for changes in provider.snapshot():
                count.add(to_piece(changes))
        found = count.manifest()
    for name in ("messages", "batches", "contents", "content_bytes", "partitions"):
        if getattr(found, name) != getattr(manifest, name):
            text = f"{name}: {getattr(manifest, name)} in the backup, {getattr(found, name)} in what was written"
            raise InternalError(f"the restored store is not what the backup has ({text}); nothing was changed")


@asynccontextmanager
async def _opened(provider: Provider) -> AsyncIterator[None]:
    await provider.open(patient=False)
    try:
        yield
    finally:
        await provider.close()
