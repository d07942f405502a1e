"""`hopline store export`, `import`, `copy`: a store that does not run, carried to another provider."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from services.cli.asking import read_settings, run
from services.common.clock import epoch_ms

# ruff: noqa: PLC0415 - as in services/__main__.py

_PLACE = (
    "A data folder (SQLite), PROVIDER:FOLDER, or a URL: postgresql://user@host/database, nats://host/stream; with"
    " passfile=FILE in it, since who lists the processes of this machine sees a password."
)
_From = Annotated[str, typer.Argument(metavar="FROM", help=f"A store that does not run. {_PLACE}")]
_To = Annotated[str, typer.Argument(metavar="TO", help=f"Where there is no store yet. {_PLACE}")]
_APART = "Where its configuration is, if that is apart: a URL, or `sqlite:` in the data folder."
_Configuration = Annotated[str, typer.Option("--configuration", metavar="URL", help=_APART)]
_FromConfiguration = Annotated[str, typer.Option("--from-configuration", metavar="URL", help=f"Of FROM. {_APART}")]
_ToConfiguration = Annotated[str, typer.Option("--to-configuration", metavar="URL", help=f"Of TO. {_APART}")]


def export(
    source: _From,
    file: Annotated[Path, typer.Argument(help="That is not there yet.")],
    configuration: _Configuration = "",
    older: Annotated[
        bool, typer.Option("--older", help="Also if its configuration is older than its messages, or they than that.")
    ] = False,
) -> None:
    """Writes down all of a store that does not run (`backup`: of one that does). Killed and done again, it goes on."""
    from services.cli.moving_shown import shown
    from services.store.moving.export import Exported
    from services.store.moving.export import export as exported
    from services.store.moving.site import site

    data = read_settings().data  # and the stack's secret is said where a URL has no credentials

    async def work() -> Exported:
        with shown() as told:
            return await exported(site(source, configuration, data, older=older), file, told)

    done = run(work())
    typer.echo(done.manifest)
    again = f", {done.resumed} of them were there already" if done.resumed else ""
    typer.echo(f"{file}: {file.stat().st_size} bytes{again}; read back and compared, queue by queue")


def import_(
    file: Annotated[Path, typer.Argument(help="As `hopline store export` or `backup` has made it.")],
    destination: _To,
    configuration: _Configuration = "",
) -> None:
    """Makes a store of a file. What the broker did since the file was made is not in it."""
    from services.cli.moving_shown import shown
    from services.store.moving.importing import Imported, import_file
    from services.store.moving.site import site

    settings = read_settings()

    async def work() -> Imported:
        with shown() as told:
            to = site(destination, configuration, settings.data)
            return await import_file(file, to, settings.partitions, epoch_ms(), told)

    done = run(work())
    typer.echo(done.manifest)
    typer.echo(done.restored)
    typer.echo(done.moved)


def copy(
    source: _From,
    destination: _To,
    from_configuration: _FromConfiguration = "",
    to_configuration: _ToConfiguration = "",
) -> None:
    """Makes a store of one that does not run, as it is. Of the two start the new one alone."""
    from services.cli.moving_shown import shown
    from services.store.moving.copy import copy as copied
    from services.store.moving.into import Moved
    from services.store.moving.site import site

    data = read_settings().data  # and as of `export`

    async def work() -> Moved:
        with shown() as told:
            from_, to = site(source, from_configuration, data), site(destination, to_configuration, data)
            return await copied(from_, to, told)

    typer.echo(run(work()))
