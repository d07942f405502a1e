"""From rows of the ledger to journeys: what each range of messages met, in each queue it went to.

Every analysis of messages begins here: it says which measures it wants, and gets a row for each segment (see
`spark.ranges`), with a column for each measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.packing import packed_what, unpacked
from spark.ranges import NOTHING, Bools, Ints, Measure, cut
from spark.schema import STAGE_NAMES

# What a row says: its stage, but for stages that mean two things.
KINDS = (
    *(name for name in STAGE_NAMES if name != "settled"),
    *("accepted", "rejected", "held", "successor", "let_go", "moved", "in_doubt"),
)

# Not the end of a copy: an owner that loses a partition drops what is not on disk, and it may be sent again.
NO_OWNER = "no_owner"
# Nor known to be one: it was dropped, or another copy in the same partition was (see `spark.unnamed`).
IN_DOUBT = "in_doubt"
# No dead letter: somebody had it go on in another queue.
MOVED = "moved"
# Nor is this one: it stays, and another message is the same in another queue.
COPIED = "copied"

# Of the kinds that have a stage with another kind.
_STAGES = {
    "accepted": "settled",
    "rejected": "settled",
    "held": "recovered",
    "let_go": "dropped",
    "in_doubt": "dropped",
    MOVED: "dead_lettered",
}

# Said of messages, in whichever queue they are; so is what gateways say of those that got into none.
_OF_MESSAGES = ("received", "returned", "confirmed", "refused", "rolled_back")

# Journeys are cut in parts of so many uids, whole and in memory: a queue that has nearly all messages is many parts.
BUCKET_BITS = 12
_ROWS_OF_BATCH = 100_000


def kinds(*names: str) -> tuple[int, ...]:
    """What `Measure` wants to know of kinds."""
    return tuple(KINDS.index(name) for name in names)


@dataclass(frozen=True, slots=True)
class Plain:
    """Segments that are alike, and of which nothing but their number matters, are counted together: one row for all.

    `which` says which those are. They are alike if they are so in all columns but `first`, `last` and those to forget;
    which then are null.
    """

    which: Callable[[Mapping[str, Ints]], Bools]
    forget: tuple[str, ...]


def place() -> Column:
    """A queue, or with "" for a queue a virtual host, as a number."""
    return F.xxhash64("virtual_host", "queue")


def journeys(
    stages: DataFrame,
    of_copies: Sequence[Measure],
    of_messages: Sequence[Measure],
    values: Mapping[str, Column] | None = None,
    plain: Plain | None = None,
) -> DataFrame:
    """Segments in columns `place`, `copy`, `first`, `last`, `messages`, and one for each measure, null where unknown.

    A segment is of uids `first` to `last`, inclusive. `place` is the queue, or where `copy` is false the virtual host
    of messages that got into none (see `spark.places.names`). Measures of messages hold for each of their copies.

    Measures can be of `time` (µs), `epoch`, `moment` (grows with epoch and time), `partition`, `reason` (place in
    REASONS), and of what else `values` says, by name: expressions over a row of `stages`, made whole numbers.
    """
    measures = (*of_copies, *of_messages)
    rows = told(stages, {KINDS[kind] for measure in measures for kind in measure.kinds}, values or {})
    columns = ("place", "copy", "first", "last", *(measure.name for measure in measures), "messages")
    schema = ", ".join(f"`{name}` long" for name in columns)
    segments = (
        in_buckets(rows).repartition("bucket").drop("bucket").mapInArrow(_cutter(of_copies, of_messages, plain), schema)
    )
    return segments.withColumn("copy", F.col("copy") != 0)


def told(stages: DataFrame, wanted: set[str], values: Mapping[str, Column]) -> DataFrame:
    """A row for each range of uids, in few columns: `place`, `what`, `time`, `first`, `last` and `values`."""
    numbers = [F.coalesce(value.cast("long"), F.lit(0)).alias(name) for name, value in values.items()]
    time = F.unix_micros("time").alias("time")
    of_message = (F.col("queue") == "") | F.col("stage").isin(*_OF_MESSAGES)
    where = F.xxhash64("virtual_host", F.when(of_message, "").otherwise(F.col("queue"))).alias("place")
    what = packed_what(_kind(), ~of_message).alias("what")
    rows = stages.where(F.col("stage").isin(*_stages(wanted)))
    ranges = rows.select(where, what, time, *numbers, F.inline("uids"))
    if "successor" not in wanted:
        return ranges
    host = F.xxhash64("virtual_host", F.lit("")).alias("place")
    successor = packed_what(F.lit(KINDS.index("successor")), F.lit(False)).alias("what")
    dead = stages.where(F.col("stage").isin("dead_lettered", COPIED))
    return ranges.unionByName(dead.select(host, successor, time, *numbers, F.inline("successors")))


def in_buckets(rows: DataFrame) -> DataFrame:
    """Divides ranges that reach over several buckets, and says which each is in: `bucket`."""
    first, last = (F.shiftright(name, BUCKET_BITS) for name in ("first", "last"))
    buckets = F.when(first == last, F.array(first)).otherwise(F.sequence(first, last))
    begin = F.shiftleft("bucket", BUCKET_BITS)
    end = begin + ((1 << BUCKET_BITS) - 1)
    return (
        rows.withColumn("bucket", F.explode(buckets))
        .withColumn("first", F.greatest("first", begin))
        .withColumn("last", F.least("last", end))
    )


def _stages(wanted: set[str]) -> list[str]:
    return sorted({_STAGES.get(name, name) for name in wanted} - {"successor"})


def _kind() -> Column:
    special = (
        F.when(F.col("stage") == "recovered", F.lit(KINDS.index("held")))
        .when(F.col("stage") == "dropped", KINDS.index("let_go"))
        .when(F.col("stage") == "dead_lettered", KINDS.index("moved"))
        .when(F.col("outcome") == "accepted", KINDS.index("accepted"))
        .otherwise(KINDS.index("rejected"))
    )
    told_apart = {"recovered": "held", "dropped": NO_OWNER, "dead_lettered": MOVED}
    plain = (
        (F.col("stage") == name, KINDS.index(name)) for name in STAGE_NAMES if name not in {"settled", *told_apart}
    )
    others = (
        ((F.col("stage") == name) & (F.col("reason") != why), KINDS.index(name)) for name, why in told_apart.items()
    )
    in_doubt = F.when((F.col("stage") == "dropped") & (F.col("reason") == IN_DOUBT), KINDS.index("in_doubt"))
    return reduce(lambda so_far, case: so_far.when(*case), (*others, *plain), in_doubt).otherwise(special)


def _cutter(
    of_copies: Sequence[Measure], of_messages: Sequence[Measure], plain: Plain | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def cut_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            table = pa.Table.from_batches(filled)
            rows = unpacked({name: table[name].to_numpy() for name in table.column_names})
            segments = cut(rows, of_copies, of_messages)
            yield from folded(segments, plain).to_batches(max_chunksize=_ROWS_OF_BATCH)

    return cut_partition


def folded(segments: dict[str, Ints], plain: Plain | None) -> pa.Table:
    """Segments as a table, with `messages`; plain ones counted together."""
    segments["messages"] = segments["last"] - segments["first"] + 1
    everything = pa.table(
        {name: pa.array(values, pa.int64(), mask=values == NOTHING) for name, values in segments.items()}
    )
    if plain is None:
        return everything
    which = plain.which(segments)
    alike = [name for name in segments if name not in {"first", "last", "messages", *plain.forget}]
    counted = everything.filter(pa.array(which)).group_by(alike).aggregate([("messages", "sum")])
    counted = counted.rename_columns([*alike, "messages"])
    remarkable = everything.filter(pa.array(~which))
    return pa.concat_tables([remarkable, counted], promote_options="default").select(everything.column_names)
