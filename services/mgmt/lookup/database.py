"""DuckDB over the ledger's files, in bounds: of memory, of threads, and of what it may open."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import structlog

from services.common.errors import InternalError, ResourceError, Unavailable
from services.mgmt.ledger.schema import TABLES
from services.mgmt.ledger.tables import DAMAGED, NAMES
from services.mgmt.lookup.hours import filed, filed_hours
from services.mgmt.lookup.id_files import FAULTS as FAULTS_OF_IDS
from services.mgmt.lookup.id_files import IdFiles, names_of, rows_of
from services.mgmt.lookup.pages import EVERYWHERE, FAULTS, Pages, Wanted, Within
from services.mgmt.lookup.spans import Span, Spans
from services.mgmt.lookup.versions import Version, version_of

log = structlog.get_logger()

_THREADS = 2
_MEMORY = "256MB"
_UIDS = ("first_uid", "last_uid")
_ATTEMPTS = 5  # files are merged, and go away, once in an hour

Row = tuple[Any, ...]


class Part(NamedTuple):
    """Rows of a table: of some hours, and those that were offered."""

    table: str
    columns: str
    condition: str
    hours: list[int]
    having: Sequence[Span] | None = None
    """Spans of uids; every row that fulfils the condition has one of these between `first_uid` and `last_uid`."""
    time_us: Span | None = None
    """Every row that fulfils the condition is of a time between these."""
    within: Within = EVERYWHERE
    """Between which values every row that fulfils the condition has these columns."""

    @property
    def wanted(self) -> Wanted:
        """What is read of its files."""
        columns, compared = (frozenset(_WORDS.findall(words)) for words in (self.columns, self.condition))
        choosing = frozenset(_UIDS if self.having is not None else ()) | ({"time"} if self.time_us else frozenset())
        known = frozenset(TABLES[self.table].names)
        return Wanted(columns | compared, self.having, self.within, compared, known, choosing)


@dataclass(slots=True)
class _Known:
    """Of files, which never change; for several threads, of which each may learn what another has learnt already."""

    unreadable: dict[str, Version] = field(default_factory=dict)
    spans: Spans = field(default_factory=Spans)
    ids: IdFiles = field(default_factory=IdFiles)
    pages: Pages = field(default_factory=Pages)

    def pass_over(self, path: str) -> bool:
        """From now on, as long as it is the same; False for one that is gone."""
        if version := version_of(path):
            self.unreadable[path] = version
        return version is not None

    def is_passed_over(self, path: str) -> bool:
        """Whether it could not be read, and is there as it was."""
        known = self.unreadable.get(path)
        return known is not None and known == version_of(path)


class Shared(NamedTuple):
    """What databases for several threads have in common; the connection is one of the same DuckDB."""

    connection: duckdb.DuckDBPyConnection
    known: _Known


class Database:
    """Reads the tables below `folder`, and no other file. For one thread at a time; only `interrupt` is for others."""

    def __init__(self, folder: Path, shared: Shared | None = None) -> None:
        self._folder = folder.absolute()
        self._offered: frozenset[str] = frozenset()
        self._unfiled_ids: pa.Table | None = None
        self._interrupted = False
        self._known: _Known = shared.known if shared else _Known()
        self._connection = shared.connection if shared else _connected(self._folder)

    def another(self) -> Database:
        """For another thread, with the same bounds and with what is known of files."""
        return Database(self._folder, Shared(self._connection.cursor(), self._known))

    def hours(self, table: str) -> list[int]:
        """The hours that were filed, newest first."""
        return filed_hours(self._folder / table)

    def offer(self, tables: Mapping[str, pa.Table]) -> None:
        """Rows that are not filed yet, by table: from now on they are read with the files, until others are offered.

        An interruption that came before is forgotten.
        """
        self._interrupted = False
        for table in NAMES:
            self._connection.unregister(f"unfiled_{table}")
            if table in tables:
                self._connection.register(f"unfiled_{table}", tables[table])
        self._offered = frozenset(tables)
        self._unfiled_ids = tables.get("ids")

    def select(
        self,
        table: str,
        columns: str,
        condition: str,
        parameters: Mapping[str, Any],
        hours: list[int],
        *,
        having: int | None = None,
        time_us: Span | None = None,
        within: Within = EVERYWHERE,
    ) -> list[Row]:
        """Rows of these hours, and all that were offered, in no order; a row may come twice.

        `having`: the uid that all rows which fulfil the condition have between `first_uid` and `last_uid`; `time_us`:
        between which times they all are; `within`: between which values they have other columns.
        Raises what `ask` does.
        """
        spans = None if having is None else [(having, having)]
        part = Part(table, columns, condition, hours, spans, time_us, within)
        return self.ask("select * from found", {"found": part}, parameters)

    def ask(self, sql: str, parts: Mapping[str, Part], parameters: Mapping[str, Any]) -> list[Row]:
        """What `sql` makes of the parts, which it knows by their names.

        Raises Unavailable when the files cannot be read, ResourceError when that takes too much or is interrupted,
        InternalError when a file has not the columns that are asked for.
        """
        for _ in range(_ATTEMPTS):
            if self._interrupted:
                raise ResourceError("the look-up was broken off")
            files = self._files(parts)
            chosen = {name: self._chosen(part, files[name]) for name, part in parts.items()}
            if self._damage(parts, chosen) or self._interrupted:
                continue
            try:
                rows = self._read(sql, parts, parameters, chosen)
            except duckdb.Error as failure:
                if not _is_the_file_s(failure):
                    raise InternalError(f"the ledger cannot be asked: {str(failure).splitlines()[0]}") from failure
                self._set_aside(parts, parameters, chosen)
                continue
            # While files are replaced, for a moment there is less to be seen than there is.
            if self._files(parts) == files:
                return rows
        raise Unavailable("the ledger's files cannot be read, or change too fast; see the log")

    def named(self, name: str, hours: list[int], most: int) -> list[Row]:
        """Kind, first and last uid and time (µs) of the newest rows of an id, `most` at least if there are as many.

        Raises what `ask` does.
        """
        go_on = self._goes_on
        rows = self._of_ids(hours, lambda files: self._known.ids.rows(files, name, most, go_on))
        if rows is not None:
            return rows + (rows_of(self._unfiled_ids, name, most) if self._unfiled_ids else [])
        condition = f"id = $name order by time desc, last_uid desc limit {most}"
        return self.select("ids", "kind, first_uid, last_uid, epoch_us(time)", condition, {"name": name}, hours)

    def names(self, uids: Collection[int], hours: list[int], time_us: Span) -> list[Row]:
        """Kind, id, first and last uid of the rows of ids that name one of `uids`; they are all of a time between
        these. Raises what `ask` does.
        """
        spans, go_on = self._known.spans, self._goes_on
        rows = self._of_ids(hours, lambda files: self._known.ids.names(spans.about(files, time_us), uids, go_on))
        if rows is not None:
            return rows + (names_of(self._unfiled_ids, uids) if self._unfiled_ids else [])
        # Each by itself: a list to be searched for each row takes ten times as long.
        condition = " or ".join(f"(first_uid <= {uid:d} and last_uid >= {uid:d})" for uid in uids)
        return self.select("ids", "kind, id, first_uid, last_uid", condition, {}, hours, time_us=time_us)

    def _of_ids(self, hours: list[int], read: Callable[[list[str]], list[Row]]) -> list[Row] | None:
        """What `read` makes of files of ids; None where one of them is damaged: `select` finds out which."""
        ids = {"ids": Part("ids", "", "", hours)}
        for _ in range(_ATTEMPTS):
            files = self._files(ids)
            try:
                rows = read(files["ids"])
            except FAULTS_OF_IDS:
                return None
            if self._interrupted:
                raise ResourceError("the look-up was broken off")
            if self._files(ids) == files:
                return rows
        return None

    def _goes_on(self) -> bool:
        return not self._interrupted

    @property
    def damaged(self) -> list[str]:
        """Files that are there and could not be read, by name below the folder: they are passed over."""
        there = filter(self._known.is_passed_over, list(self._known.unreadable))
        return sorted(str(Path(path).relative_to(self._folder)) for path in there)

    def interrupt(self) -> None:
        """Ends the `select` that is under way, and those that follow until rows are offered again."""
        self._interrupted = True
        self._connection.interrupt()

    def close(self) -> None:
        """Frees what it holds."""
        self._connection.close()

    def _files(self, parts: Mapping[str, Part]) -> dict[str, list[str]]:
        return {
            name: sorted(
                path
                for path in set(filed(self._folder / part.table, part.hours))
                if not self._known.is_passed_over(path)
            )
            for name, part in parts.items()
        }

    def _chosen(self, part: Part, files: list[str]) -> list[str]:
        """Those that can have what is wanted."""
        spans = self._known.spans
        return spans.with_any(spans.about(files, part.time_us), part.having, self._goes_on)

    def _read(
        self, sql: str, parts: Mapping[str, Part], parameters: Mapping[str, Any], files: Mapping[str, list[str]]
    ) -> list[Row]:
        if not all(files[name] or part.table in self._offered for name, part in parts.items()):
            return []  # of nothing nothing comes: parts are joined, and their rows are wanted
        known = ", ".join(f"{name} as ({self._rows(name, part, files[name])})" for name, part in parts.items())
        patterns = {f"files_{name}": [_pattern(path) for path in its] for name, its in files.items() if its}
        return self._run(f"with {known} {sql}", {**parameters, **patterns})

    def _rows(self, name: str, part: Part, files: list[str]) -> str:
        sources = [_FILES.format(name)] if files else []
        sources += [f"unfiled_{part.table}"] if part.table in self._offered else []
        return " union all ".join(
            f"(select {part.columns} from {source} where {part.condition})"  # noqa: S608 - none of it comes from outside
            for source in sources
        )

    def _run(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        used = set(_PARAMETERS.findall(sql))  # DuckDB takes no others
        try:
            given = {name: value for name, value in parameters.items() if name in used}
            return self._connection.execute(sql, given).fetchall()
        except (duckdb.OutOfMemoryException, duckdb.InterruptException) as failure:
            raise ResourceError(f"the look-up takes too much: {str(failure).splitlines()[0]}") from failure

    def _damage(self, parts: Mapping[str, Part], files: Mapping[str, list[str]]) -> bool:
        """Whether some of what is to be read is damaged: those files are passed over from now on."""
        found = False
        for name, part in parts.items():
            for file in files[name]:
                try:
                    version = version_of(file)
                    self._known.pages.verify(file, version, part.wanted, self._goes_on)
                except FAULTS as failure:
                    found |= self._pass_over(file, failure)
        return found

    def _pass_over(self, file: str, failure: Exception) -> bool:
        """False for a file that is gone: it is not listed again."""
        is_there = self._known.pass_over(file)
        if is_there:
            log.warning(
                "a file of the ledger is damaged and passed over",
                file=file,
                reason=str(failure).splitlines()[0],
                do=DAMAGED,
            )
        return is_there

    def _set_aside(
        self,
        parts: Mapping[str, Part],
        parameters: Mapping[str, Any],
        files: Mapping[str, list[str]],
    ) -> None:
        """Files that are gone are not listed again; one that is damaged must not hide all others."""
        for name, part in parts.items():
            for file in files[name]:
                try:
                    self._read(_WHOLE.format(name), {name: part}, parameters, {name: [file]})
                except duckdb.Error as failure:
                    if _is_the_file_s(failure):
                        self._pass_over(file, failure)


def _connected(folder: Path) -> duckdb.DuckDBPyConnection:
    """A DuckDB that opens nothing outside of `folder`."""
    connection = duckdb.connect(":memory:", config={"threads": _THREADS, "memory_limit": _MEMORY})
    run = connection.execute
    run("set parquet_metadata_cache = false")  # a megabyte for each file
    run("set temp_directory = ''")  # nothing is written, whatever it takes
    run("set python_enable_replacements = false")
    run("set autoinstall_known_extensions = false")
    run("set autoload_known_extensions = false")
    # Files are named as patterns, and both the pattern and what it means are checked.
    run("set allowed_directories = $folders", {"folders": [f"{folder}/", f"{_pattern(str(folder))}/"]})
    run("set enable_external_access = false")
    run("set lock_configuration = true")
    return connection


def _is_the_file_s(failure: duckdb.Error) -> bool:
    """Whether it is gone or damaged; what Thrift and decompression find has no class of its own."""
    return isinstance(failure, (duckdb.IOException, duckdb.InvalidInputException)) or type(failure) is duckdb.Error


# By name: what a later version adds is missing in older files.
_FILES = "read_parquet($files_{}, union_by_name = true, hive_partitioning = false)"

_WHOLE = "select max(hash({0})) from {0}"  # every column of every row is read
_WORDS = re.compile(r"[^\W\d]\w*")  # no numbers: they would tell each look-up from the others
_PARAMETERS = re.compile(r"\$(\w+)")

_PATTERNS = str.maketrans({character: f"[{character}]" for character in "*?["})


def _pattern(path: str) -> str:
    """The one that means `path` and nothing else."""
    return path.translate(_PATTERNS)
