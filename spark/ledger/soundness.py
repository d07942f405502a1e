"""Tells sound Parquet files from those that are truncated, still being written, or of another schema."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark.ledger.files import LedgerFolder
from spark.schema import LATER

_THREADS = 8
GONE = "gone, and nothing has taken its place"
COPY = "a copy of "  # as the reasons begin of what is told by another file


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that is not read, and why."""

    path: str
    reason: str

    @property
    def is_copy(self) -> bool:
        """Whether nothing is missing without it: another file has the same."""
        return self.reason.startswith(COPY)

    @property
    def is_gone(self) -> bool:
        """Whether it was listed, and is not there: mgmt merges the files of an hour that is over."""
        return self.reason == GONE


@dataclass(frozen=True, slots=True)
class Sound:
    """A file that is read."""

    path: str
    rows: int
    size: int


def sort_out(
    folder: LedgerFolder, paths: Sequence[str], expected: pa.Schema, damaged: Mapping[str, str] = MappingProxyType({})
) -> tuple[list[Sound], list[Refused]]:
    """Which of the files can be read as `expected`; columns beyond it do not matter. Reads footers only.

    `damaged` are files that are not to be read, with the reasons.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        judged = list(
            pool.map(
                lambda path: Refused(path, damaged[path]) if path in damaged else _judge(folder, path, expected), paths
            )
        )
    sound, copies = _each_once(folder, [one for one in judged if isinstance(one, Sound)])
    return sound, [one for one in judged if isinstance(one, Refused)] + copies


def _each_once(folder: LedgerFolder, sound: Sequence[Sound]) -> tuple[list[Sound], list[Refused]]:
    """A file that is there under another name too has every message twice: the first is read."""
    alike = Counter((one.rows, one.size) for one in sound)
    first: dict[tuple[int, int, bytes], str] = {}
    kept: list[Sound] = []
    copies: list[Refused] = []
    for one in sound:
        digest = _digest(folder, one.path) if alike[one.rows, one.size] > 1 else one.path.encode()
        before = first.setdefault((one.rows, one.size, digest), one.path)
        if before == one.path:
            kept.append(one)
        else:
            copies.append(Refused(one.path, f"{COPY}{before}"))
    return kept, copies


def _digest(folder: LedgerFolder, path: str) -> bytes:
    with folder.system.open_input_file(path) as file:
        return hashlib.file_digest(file, "sha256").digest()


def damage(folder: LedgerFolder, paths: Sequence[str]) -> dict[str, str]:
    """Files that cannot be read to their end, with the reasons. Reads all of them."""
    with ThreadPoolExecutor(_THREADS) as pool:
        reasons = pool.map(lambda path: _damage(folder, path), paths)
        return {path: reason for path, reason in zip(paths, reasons, strict=True) if reason}


def _damage(folder: LedgerFolder, path: str) -> str:
    try:
        with folder.system.open_input_file(path) as file:
            for rows in pq.ParquetFile(file, page_checksum_verification=True).iter_batches():
                if _is_odd(rows):
                    return "damaged: uids that no row can have"
    except FileNotFoundError:
        return ""  # it was put together with others
    except (pa.ArrowException, OSError) as error:
        return f"damaged: {_line(error)}"
    return ""


def _is_odd(rows: pa.RecordBatch) -> bool:
    """Whether a range of uids ends before it begins, or is outside of its row's: in files of older releases, which
    have no checksums, damage that can be decoded shows there if anywhere.
    """
    if "uids" not in rows.schema.names or not rows.num_rows:
        return False
    parents, ranges = pc.list_parent_indices(rows["uids"]), pc.list_flatten(rows["uids"])
    first, last = (pc.struct_field(ranges, name) for name in ("first", "last"))
    least, greatest = (rows[name].take(parents) for name in ("first_uid", "last_uid"))
    in_order = (pc.less_equal(*pair) for pair in ((least, first), (first, last), (last, greatest)))
    return not all(pc.all(each).as_py() in {True, None} for each in in_order)


def _line(error: Exception) -> str:
    """Of what it says, the first line, without what was in the file and is no text."""
    first = str(error).partition("\n")[0]
    return "".join(each if each.isprintable() else "?" for each in first)


def _judge(folder: LedgerFolder, path: str, expected: pa.Schema) -> Sound | Refused:
    try:
        with folder.system.open_input_file(path) as file:
            size = file.size()
            parquet = pq.ParquetFile(file)
            fault = _fault(parquet.schema_arrow, expected)
            rows = parquet.metadata.num_rows
    except FileNotFoundError:
        return Refused(path, GONE)
    except (pa.ArrowException, OSError) as error:
        return Refused(path, f"unreadable: {_line(error)}")
    return Refused(path, fault) if fault else Sound(path, rows, size)


def _fault(found: pa.Schema, expected: pa.Schema) -> str:
    for field in expected:
        if field.name not in found.names:
            if field.name in LATER:
                continue
            return f"wrong schema: no column {field.name}"
        kind = _plain(found.field(field.name).type)
        if not _same(kind, field.type):
            return f"wrong schema: {field.name} is {kind}, not {field.type}"
    return ""


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _same(found: pa.DataType, expected: pa.DataType) -> bool:
    """Names of list items and whether there may be nulls are the writer's own business."""
    if pa.types.is_list(expected):
        return pa.types.is_list(found) and _same(found.value_type, expected.value_type)
    if pa.types.is_struct(expected):
        return pa.types.is_struct(found) and all(
            found.get_field_index(field.name) >= 0 and _same(found.field(field.name).type, field.type)
            for field in expected
        )
    return bool(found.equals(expected))
