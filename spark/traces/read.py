"""Reads spans of files of any of the formats, told apart by what they begin with; what cannot be read is counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyarrow import ArrowException, fs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.ledger.files import LedgerFolder, place
from spark.ledger.soundness import Refused
from spark.traces import jaeger, otlp

_LOOKED_AT = 4096  # bytes of a file that tell its format
_ZSTD = b"\x28\xb5\x2f\xfd"
_ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz")


@dataclass(frozen=True, slots=True)
class SpansReading:
    """Spans as far as they can be read."""

    table: DataFrame
    files: int
    spans: int  # in the files: those that are there twice, twice
    lines: int
    bad_lines: int  # truncated, or no traces
    refused: list[Refused] = field(default_factory=list)


def read_spans(spark: SparkSession, folders: Sequence[str]) -> SpansReading:
    """All spans in the files of these folders and the folders in them; one that is there twice counts once.

    Two copies happen: a collector that rotates its file renames it while it is read.
    """
    found: dict[str, list[str]] = {"otlp": [], "jaeger": []}
    refused: list[Refused] = []
    for where in folders:
        folder = place(where)
        for path in _files(folder):
            kind = _format(folder, path)
            if kind in found:
                found[kind].append(folder.uri(path))
            else:
                refused.append(Refused(path, kind))
    lines = otlp.parsed(_text(spark, found["otlp"]).where("trim(value) != ''"))
    documents = jaeger.parsed(_text(spark, found["jaeger"], whole=True))
    counts = [_counted(lines, otlp.is_bad(), otlp.count()), _counted(documents, jaeger.is_bad(), jaeger.count())]
    total, bad, found_spans = (sum(each) for each in zip(*counts, strict=True))
    table = otlp.spans(lines).unionByName(jaeger.spans(documents)).dropDuplicates(["trace_id", "span_id"])
    return SpansReading(table, sum(map(len, found.values())), found_spans, total, bad, refused)


def _files(folder: LedgerFolder) -> Iterator[str]:
    (top,) = folder.system.get_file_info([folder.path])
    if top.type == fs.FileType.File:
        yield top.path
        return
    infos = folder.system.get_file_info(fs.FileSelector(folder.path, allow_not_found=True, recursive=True))
    for info in sorted(infos, key=lambda info: info.path):
        hidden = any(part.startswith((".", "_")) for part in info.path[len(folder.path) :].split("/"))
        if info.type == fs.FileType.File and info.path.endswith(_ENDINGS) and not hidden:
            yield info.path


def _format(folder: LedgerFolder, path: str) -> str:
    """`otlp`, `jaeger`, or why the file cannot be read."""
    try:
        with folder.system.open_input_stream(path) as file:  # unpacks what ends with .gz
            begin = file.read(_LOOKED_AT)
    except (ArrowException, OSError) as error:
        return f"unreadable: {str(error).splitlines()[0]}"
    if not begin.strip():
        return "empty"
    if _ZSTD in begin[:8] or not (begin.lstrip().startswith(b"{") or b'"resourceSpans"' in begin):
        return "neither OTLP in JSON lines nor Jaeger's JSON; of the collector: format: json, and no compression"
    return "jaeger" if b'"data"' in begin and b"resourceSpans" not in begin else "otlp"


def _text(spark: SparkSession, paths: list[str], *, whole: bool = False) -> DataFrame:
    if not paths:
        return spark.createDataFrame([], "value STRING")
    return spark.read.text(paths, wholetext=whole)


def _counted(parsed: DataFrame, is_bad: Column, spans: Column) -> tuple[int, int, int]:
    """Lines, bad ones, and the spans of the others."""
    sums = F.sum(F.when(~is_bad, F.greatest(spans, F.lit(0))))
    ((lines, bad, found),) = parsed.agg(F.count("*"), F.count_if(is_bad), sums).collect()
    return int(lines), int(bad), int(found or 0)
