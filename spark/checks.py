"""What can be known to be wrong before Spark is started, which takes seconds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyarrow import fs

from spark.as_of import as_of
from spark.errors import AnalysisError, NothingToRead
from spark.ledger.files import files_of, place
from spark.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark.job import Job
    from spark.run import Sources

_PROBE = ".writable"


def require_options(job: Job, sources: Sources) -> None:
    """Raises AnalysisError where an option is given that the analysis does not have."""
    if unknown := sorted(sources.options.keys() - job.options.keys()):
        known = "; ".join(f"{name}: {meaning}" for name, meaning in job.options.items()) or "it has none"
        raise AnalysisError(f"{job.name} knows no option {', '.join(unknown)} ({known})")
    require_moment(sources)


def require_moment(sources: Sources) -> None:
    """Raises AnalysisError where the record is to be judged as of what is no moment."""
    as_of(sources.options.get("as-of", ""), live=False, now=datetime.now(UTC))


def require_ledger(job: Job, sources: Sources) -> None:
    """Raises NothingToRead where the analysis reads the ledger, and there is none for the time that is asked for."""
    if "stages" not in job.reads:
        return
    try:
        found = files_of(place(sources.ledger), "stages", sources.since, sources.until)
    except (OSError, ValueError) as error:
        raise NothingToRead(f"{sources.ledger} cannot be read: {_line(error)}") from None
    if not found:
        raise NothingToRead(nothing_for_the_time(sources))


def require_any(jobs: Sequence[Job], sources: Sources) -> None:
    """Raises NothingToRead where none of these has anything to read: no ledger, and no folder of spans."""
    of_ledger = [job for job in jobs if "stages" in job.reads]
    if len(of_ledger) == len(jobs) or not any(map(_is_there, sources.spans)):
        for job in of_ledger[:1]:
            require_ledger(job, sources)


def _is_there(folder: str) -> bool:
    """Also where nobody can tell: whoever reads it will say what is wrong."""
    try:
        found = place(folder)
        return bool(found.system.get_file_info(found.path).type != fs.FileType.NotFound)
    except (OSError, ValueError):
        return True


def nothing_for_the_time(sources: Sources) -> str:
    """What is said where the ledger has no files."""
    return f"no files under {sources.ledger}/stages for the time that is asked for"


def require_writable(out: str) -> None:
    """Raises AnalysisError where results cannot be written under `out`, which is made if it is not there."""
    try:
        there = place(out)
        there.system.create_dir(there.path, recursive=True)
        probe = f"{there.path.rstrip('/')}/{_PROBE}"
        there.system.open_output_stream(probe).close()
        there.system.delete_file(probe)
    except (OSError, ValueError) as error:
        raise AnalysisError(f"results cannot be written to {out}: {_line(error)}") from None


def require_no_ledger(out: str) -> None:
    """Raises AnalysisError where there is a ledger already: another one in the same folder would be mixed with it."""
    folder = place(out)
    if any(files_of(folder, table, None, None) for table in TABLES):
        raise AnalysisError(f"{out} has a ledger already: say another folder, or remove it")


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]
