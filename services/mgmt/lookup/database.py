"""DuckDB over the ledger's files, in bounds: of memory, of threads, and of what it may open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import structlog

from services.common.errors import InternalError, ResourceError, Unavailable
from services.mgmt.lookup.hours import filed, filed_hours
from services.mgmt.lookup.spans import Spans

log = structlog.get_logger()

_THREADS = 2
_MEMORY = "256MB"
_ATTEMPTS = 5  # files are merged, and go away, once in an hour

Row = tuple[Any, ...]


class Database:
    """Reads the tables below `folder`, and no other file. For one thread at a time; only `interrupt` is for others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._connection = duckdb.connect(":memory:", config={"threads": _THREADS, "memory_limit": _MEMORY})
        self._unreadable: set[str] = set()
        self._spans = Spans()
        self._offered: frozenset[str] = frozenset()
        self._interrupted = False
        self._confine()

    def hours(self, table: str) -> list[int]:
        """The hours that were filed, newest first."""
        return filed_hours(self._folder / table)

    def offer(self, tables: Mapping[str, pa.Table]) -> None:
        """Rows that are not filed yet, by table: from now on they are read with the files, until others are offered.

        An interruption that came before is forgotten.
        """
        self._interrupted = False
        for table in ("stages", "ids", "gaps"):
            self._connection.unregister(f"unfiled_{table}")
            if table in tables:
                self._connection.register(f"unfiled_{table}", tables[table])
        self._offered = frozenset(tables)

    def select(
        self,
        table: str,
        columns: str,
        condition: str,
        parameters: Mapping[str, Any],
        hours: list[int],
        *,
        having: int | None = None,
    ) -> list[Row]:
        """Rows of these hours, and all that were offered, in no order; a row may come twice.

        `having`: the uid that all rows which fulfil the condition have between `first_uid` and `last_uid`.
        Raises Unavailable when the files cannot be read, ResourceError when that takes too much or is interrupted,
        InternalError when a file has not the columns that are asked for.
        """
        for _ in range(_ATTEMPTS):
            if self._interrupted:
                raise ResourceError("the look-up was broken off")
            files = self._files(table, hours)
            chosen = files if having is None else self._spans.with_uid(files, having)
            try:
                rows = self._read(table, columns, condition, parameters, chosen)
            except (duckdb.IOException, duckdb.InvalidInputException) as failure:
                self._set_aside(chosen, failure)
                continue
            except duckdb.Error as failure:
                raise InternalError(f"the ledger cannot be asked: {str(failure).splitlines()[0]}") from failure
            # While files are replaced, for a moment there is less to be seen than there is.
            if self._files(table, hours) == files:
                return rows
        raise Unavailable("the ledger's files cannot be read, or change too fast; see the log")

    def interrupt(self) -> None:
        """Ends the `select` that is under way, and those that follow until rows are offered again."""
        self._interrupted = True
        self._connection.interrupt()

    def close(self) -> None:
        """Frees what it holds."""
        self._connection.close()

    def _files(self, table: str, hours: list[int]) -> list[str]:
        return sorted(set(filed(self._folder / table, hours)) - self._unreadable)

    def _read(
        self, table: str, columns: str, condition: str, parameters: Mapping[str, Any], files: list[str]
    ) -> list[Row]:
        sql = " union all ".join(
            f"(select {columns} from {source} where {condition})"  # noqa: S608 - none of it comes from outside
            for source in self._sources(table, files)
        )
        patterns = {"files": [_pattern(path) for path in files]} if files else {}
        return self._run(sql, {**parameters, **patterns}) if sql else []

    def _run(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        try:
            return self._connection.execute(sql, dict(parameters)).fetchall()
        except (duckdb.OutOfMemoryException, duckdb.InterruptException) as failure:
            raise ResourceError(f"the look-up takes too much: {str(failure).splitlines()[0]}") from failure

    def _sources(self, table: str, files: list[str]) -> list[str]:
        unfiled = [f"unfiled_{table}"] if table in self._offered else []
        return [*([_FILES] if files else []), *unfiled]

    def _set_aside(self, files: list[str], failure: duckdb.Error) -> None:
        """Files that are gone are not listed again; one that is damaged must not hide all others."""
        for file in files:
            try:
                self._connection.execute("select count(*) from parquet_file_metadata($file)", {"file": _pattern(file)})
            except duckdb.Error:
                if Path(file).exists():
                    self._unreadable.add(file)
                    log.warning("a file of the ledger is damaged", file=file, reason=str(failure))

    def _confine(self) -> None:
        run = self._connection.execute
        run("set parquet_metadata_cache = true")
        run("set temp_directory = ''")  # nothing is written, whatever it takes
        run("set python_enable_replacements = false")
        run("set autoinstall_known_extensions = false")
        run("set autoload_known_extensions = false")
        # Files are named as patterns, and both the pattern and what it means are checked.
        run("set allowed_directories = $folders", {"folders": [f"{self._folder}/", f"{_pattern(str(self._folder))}/"]})
        run("set enable_external_access = false")
        run("set lock_configuration = true")


# By name: what a later version adds is missing in older files.
_FILES = "read_parquet($files, union_by_name = true, hive_partitioning = false)"


_PATTERNS = str.maketrans({character: f"[{character}]" for character in "*?["})


def _pattern(path: str) -> str:
    """The one that means `path` and nothing else."""
    return path.translate(_PATTERNS)
