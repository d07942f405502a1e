"""Tells journeys that are over from those that go on: of the first what they come to, of the others what is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from spark.hops import HOPS
from spark.hops import OF_COPIES as TIMES_OF_COPIES
from spark.hops import OF_MESSAGES as TIMES_OF_MESSAGES
from spark.jobs.audit import ENDS, OF_COPIES, OF_MESSAGES, PLAIN
from spark.journeys import folded, in_buckets
from spark.packing import unpacked
from spark.ranges import NOTHING, Bools, Ints, clip, cut, union
from spark.stream.kept import ROW, all_rows, file_rows

# Sorts of rows that come out of a cut.
OVER, GOING_ON, TIME = range(3)

_AUDIT = (*OF_COPIES, *OF_MESSAGES)
_SEGMENT = ("place", "copy", "first", "last", *(measure.name for measure in _AUDIT), "messages")
_EXTRA = ("hop", "bucket", "total_us", "max_us")
_COLUMNS = ("sort", *_SEGMENT, *_EXTRA)
_SCHEMA = pa.schema([(name, pa.int64()) for name in _COLUMNS])
_ROWS_OF_BATCH = 100_000
_STEPS = 32  # as in spark.histogram


@dataclass(frozen=True, slots=True)
class Horizon:
    """When journeys are over, by the record's own clock, in µs."""

    settled: int  # those that ended before
    given_up: int  # all that nothing was heard of since


def cut_stream(rows: DataFrame, kept: DataFrame, horizon: Horizon, partitions: int, keep: str) -> DataFrame:
    """Of new rows (see `spark.journeys.told`) and of those kept before (see `spark.stream.kept`), by `sort`: OVER:
    segments of journeys that are over; GOING_ON: of those that go on; TIME: how long the hops of those that are over
    took, as histograms. Rows about those that go on are filed in the folder `keep`, to be looked at again.
    """
    if partitions == 1:  # nothing need be shuffled
        together = rows.unionByName(kept, allowMissingColumns=True).coalesce(1)
    else:
        everything = in_buckets(rows).unionByName(kept, allowMissingColumns=True)
        together = everything.repartition(partitions, "bucket")
    schema = ", ".join(f"`{name}` long" for name in _COLUMNS)
    return together.select(*ROW, "rows").mapInArrow(_cutter(horizon, keep), schema)


def _cutter(horizon: Horizon, keep: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def cut_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            for part in _parts(all_rows(pa.Table.from_batches(filled)), horizon, keep):
                yield from part.to_batches(max_chunksize=_ROWS_OF_BATCH)

    return cut_partition


def _parts(rows: dict[str, Ints], horizon: Horizon, keep: str) -> Iterator[pa.Table]:
    measures = {measure.name: measure for measure in (*_AUDIT, *TIMES_OF_COPIES, *TIMES_OF_MESSAGES)}
    of_copies = {measure.name for measure in (*OF_COPIES, *TIMES_OF_COPIES)}
    told = unpacked(rows)
    segments = cut(
        told,
        [measure for name, measure in measures.items() if name in of_copies],
        [measure for name, measure in measures.items() if name not in of_copies],
    )
    over = _is_over(segments, horizon)
    ended, going_on = _chosen(segments, over), _chosen(segments, ~over)
    yield _sorted(TIME, _times(ended))
    yield _sorted(OVER, folded({name: ended[name] for name in _SEGMENT if name in ended}, PLAIN))
    yield _sorted(GOING_ON, folded({name: going_on[name] for name in _SEGMENT if name in going_on}, PLAIN))
    partition = TaskContext.get()
    file_rows(_still_needed(rows, told["copy"] == 1, going_on), keep, partition.partitionId() if partition else 0)


def _is_over(segments: Mapping[str, Ints], horizon: Horizon) -> Bools:
    seen = np.maximum(segments["last_time"], segments["message_time"])
    copy = segments["copy"] == 1
    ended = sum(segments[name] for name in ENDS) > 0
    nowhere = segments["returned"] + segments["dropped_unrouted"] + segments["refused"] + segments["rolled_back"] > 0
    done = np.where(copy, ended, nowhere)
    over: Bools = (done & (seen < horizon.settled)) | (seen < horizon.given_up)
    return over


def _chosen(segments: Mapping[str, Ints], which: Bools) -> dict[str, Ints]:
    return {name: values[which] for name, values in segments.items()}


def _still_needed(rows: Mapping[str, Ints], is_copy: Bools, going_on: Mapping[str, Ints]) -> dict[str, Ints]:
    """The rows about journeys that go on; those of a message for as long as any of its copies does."""
    copies = _chosen(going_on, going_on["copy"] == 1)
    of_copies = clip(_chosen(rows, is_copy), copies)
    of_messages = _chosen(rows, ~is_copy)
    hosts = of_messages["place"]
    anywhere = clip({**of_messages, "host": hosts, "place": np.zeros_like(hosts)}, union(going_on))
    anywhere["place"] = anywhere.pop("host")
    return {name: np.concatenate([of_copies[name], anywhere[name]]) for name in of_copies}


def _times(segments: Mapping[str, Ints]) -> pa.Table:
    """Histograms of hops by place: what `spark.histogram` would make."""
    copies = _chosen(segments, segments["copy"] == 1)
    parts = [_hop(number, copies, hop.begin, hop.end) for number, hop in enumerate(HOPS)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    keys = ["place", "partition", "hop", "bucket"]
    counted = table.group_by(keys).aggregate([("messages", "sum"), ("total_us", "sum"), ("took", "max")])
    return counted.rename_columns([*keys, "messages", "total_us", "max_us"])


def _hop(number: int, copies: Mapping[str, Ints], begin: str, end: str) -> dict[str, Ints]:
    known = (copies[begin] != NOTHING) & (copies[end] != NOTHING)
    took = np.maximum(copies[end][known] - copies[begin][known], 0)
    messages = (copies["last"] - copies["first"] + 1)[known]
    bucket = np.where(took < 1, -1, np.round(np.log(np.maximum(took, 1)) * _STEPS)).astype(np.int64)
    return {
        "place": copies["place"][known],
        "partition": copies["partition"][known],
        "hop": np.full(len(took), number),
        "bucket": bucket,
        "messages": messages,
        "total_us": took * messages,
        "took": took,
    }


def _sorted(sort: int, table: pa.Table) -> pa.Table:
    def column(field: pa.Field) -> pa.ChunkedArray | pa.Array:
        return table[field.name] if field.name in table.column_names else pa.nulls(len(table), field.type)

    columns = [column(field) for field in _SCHEMA]
    return pa.table([pa.array(np.full(len(table), sort)), *columns[1:]], _SCHEMA)
