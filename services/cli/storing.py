"""`hopline store`: runs it; backup of one that runs, restore of one that does not; moving is in `moving.py`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.asking import fail, read_settings, run
from services.cli.moving import copy, export, import_
from services.common.clock import epoch_ms
from services.common.errors import PreconditionFailed

if TYPE_CHECKING:
    from services.common.config import Settings
    from services.store.backup.manifest import Manifest
    from services.store.backup.restore import Outcome

# ruff: noqa: PLC0415 - as in services/__main__.py

_File = Annotated[Path, typer.Argument(help="As `hopline store backup` has made it.")]
_NOT_APART = (
    "a restore makes one folder, and HOPLINE_STORE_CONFIGURATION_URL is set: "
    "`hopline store import FILE TO --configuration URL` makes both, in two new places (docs/backups.md)"
)


def commands(serve: Callable[[str], None]) -> typer.Typer:
    """`serve` runs the store process of a name until it is asked to end."""
    store = typer.Typer(invoke_without_command=True)

    @store.callback()
    def main(
        context: typer.Context,
        name: Annotated[
            str, typer.Option(help="One that no other store process on this machine has: store-<something>.")
        ] = "store",
    ) -> None:
        """Runs the store: data on disk, leases and records. Of several on a database one writes."""
        if not context.invoked_subcommand:
            serve(name)

    store.command("backup")(backup)
    store.command("verify")(verify)
    store.command("restore")(restore)
    store.command("export")(export)
    store.command("import")(import_)
    store.command("copy")(copy)
    return store


def backup(
    path: Annotated[
        str,
        typer.Argument(
            help="A file that is not there yet, or a folder, in which it is named by the time; FOLDER/ is made."
        ),
    ],
) -> None:
    """Writes all that the running store has on disk, at one moment, to a file; the broker goes on."""
    settings = read_settings()
    address = settings.address_of("store")
    manifest, written = run(_back_up(address, _named_by_time(path)), address)
    typer.echo(manifest)
    typer.echo(f"{written}: {written.stat().st_size} bytes")


def verify(file: _File) -> None:
    """Reads all of a backup, says what is in it, and whether it is whole; nothing is written."""
    from services.cli.bar import bar_beside
    from services.store.backup.file import verify as verified

    async def look() -> Manifest:
        with bar_beside("reading"):
            return verified(file)

    typer.echo(run(look()))
    typer.echo("whole, and as it was written")


def restore(
    file: _File,
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="A data folder whose store is stopped.")],
    replace: Annotated[bool, typer.Option("--replace", help="Puts the store that is there aside.")] = False,
) -> None:
    """Makes a data folder from a backup. What the broker did since the backup is not in it."""
    outcome = run(_restore(read_settings(), file, to, replace=replace))
    typer.echo(outcome.manifest)
    typer.echo(outcome.restored)
    if outcome.aside:
        typer.echo(f"what was there is in {outcome.aside}")


async def _restore(settings: Settings, file: Path, to: Path, *, replace: bool) -> Outcome:
    from services.cli.bar import bar_beside
    from services.store.backup.restore import Restore
    from services.store.choice import choose

    chosen = choose(settings)
    if chosen.configuration:
        raise PreconditionFailed(_NOT_APART)
    with bar_beside("restoring"):
        return await Restore(file, to, chosen.make, settings.partitions, epoch_ms()).run(replace=replace)


async def _back_up(address: str, file: Path) -> tuple[Manifest, Path]:
    from services.cli.moving_shown import shown
    from services.common.clients.store import StoreClient
    from services.store.backup.file import BackupWriter

    writer = BackupWriter(file)
    client = StoreClient(address)
    try:
        with shown() as told:
            told.phase("backing up")
            async with aclosing(client.backup()) as pieces:
                async for piece in pieces:
                    writer.add(piece)
                    told.step(piece.ByteSize())
        return writer.finish(), file
    finally:
        writer.discard()
        await client.close()


def _named_by_time(path: str) -> Path:
    place = Path(path)
    if path.endswith("/"):
        try:
            place.mkdir(mode=0o700, exist_ok=True)
        except OSError as failure:
            fail(f"the folder {path} cannot be made: {failure.strerror}")
    return place / f"hopline-{epoch_ms()}.backup" if place.is_dir() else place
