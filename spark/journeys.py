"""From rows of the ledger to journeys: what each range of messages met, in each queue it went to.

Every analysis of messages begins here: it says which measures it wants, and gets a row for each segment (see
`spark.ranges`), with a column for each measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.ranges import NOTHING, Ints, Measure, cut
from spark.schema import STAGE_NAMES

# What a row says: its stage, but for stages that mean two things.
KINDS = (*(name for name in STAGE_NAMES if name != "settled"), "accepted", "rejected", "held", "successor")

# Said of messages, in whichever queue they are; so is what gateways say of those that got into none.
_OF_MESSAGES = ("received", "returned", "confirmed", "refused", "rolled_back")
_MESSAGES = 0  # the group of messages; no queue hashes to it in practice


def kinds(*names: str) -> tuple[int, ...]:
    """What `Measure` wants to know of kinds."""
    return tuple(KINDS.index(name) for name in names)


# Messages that got into no queue have a virtual host all the same.
_HOST = Measure("host", kinds(*_OF_MESSAGES, "dropped"), "max", "host")

# Journeys are cut in parts of so many uids, whole and in memory: a queue that has nearly all messages is many parts.
_BUCKET_BITS = 12
_ROWS_OF_BATCH = 100_000


def moment() -> Column:
    """When something happened to a copy in a queue, as a number that grows.

    Epochs of the partition come first, for the clocks of owners disagree; then 16 µs steps since 2020.
    """
    steps = F.shiftright(F.unix_micros("time"), 4) - (1_577_836_800_000_000 >> 4)
    return F.shiftleft(F.col("epoch"), 46) + steps


def place() -> Column:
    """A queue, or with "" for a queue a virtual host, as a number."""
    return F.xxhash64("virtual_host", "queue")


def journeys(
    stages: DataFrame,
    of_copies: Sequence[Measure],
    of_messages: Sequence[Measure],
    values: Mapping[str, Column],
) -> DataFrame:
    """Segments in columns `place`, `copy`, `first`, `last`, and one for each measure, null where unknown.

    A segment is of uids `first` to `last`, inclusive. `place` is the queue, or where `copy` is false the virtual host
    of messages that got into none (see `spark.places.names`). `values` are what measures are of, by name: expressions
    over a row of `stages`, made whole numbers. Measures of messages hold for each of their copies.
    """
    of_messages = (*of_messages, _HOST)
    measures = (*of_copies, *of_messages)
    wanted = {KINDS[kind] for measure in measures for kind in measure.kinds}
    rows = _ranges(stages, wanted, {**values, _HOST.of: F.xxhash64("virtual_host", F.lit(""))})
    schema = ", ".join(f"`{name}` long" for name in ("group", "first", "last", *(one.name for one in measures)))
    parts = _in_buckets(rows).repartition("bucket").drop("bucket")
    segments = parts.mapInArrow(_cutter(of_copies, of_messages), schema)
    copy = F.col("group") != _MESSAGES
    where = F.when(copy, F.col("group")).otherwise(F.col(_HOST.name))
    return segments.select("*", copy.alias("copy"), where.alias("place")).drop("group", _HOST.name)


def _group() -> Column:
    """The queue that a row is about, or that it is about messages."""
    of_messages = (F.col("queue") == "") | F.col("stage").isin(*_OF_MESSAGES)
    return F.when(of_messages, _MESSAGES).otherwise(place())


def _ranges(stages: DataFrame, wanted: set[str], values: Mapping[str, Column]) -> DataFrame:
    """A row for each range of uids."""
    numbers = [F.coalesce(value.cast("long"), F.lit(0)).alias(name) for name, value in values.items()]
    rows = stages.where(F.col("stage").isin(*_stages(wanted)))
    told = rows.select(_group().alias("group"), _kind().alias("kind"), *numbers, F.inline("uids"))
    if "successor" not in wanted:
        return told
    dead = stages.where(F.col("stage") == "dead_lettered")
    successor = F.lit(KINDS.index("successor")).alias("kind")
    return told.unionByName(
        dead.select(F.lit(_MESSAGES).cast("long").alias("group"), successor, *numbers, F.inline("successors"))
    )


def _stages(wanted: set[str]) -> list[str]:
    of = {"accepted": "settled", "rejected": "settled", "held": "recovered"}
    return sorted({of.get(name, name) for name in wanted} - {"successor"})


def _kind() -> Column:
    special = (
        F.when(F.col("stage") != "settled", F.lit(KINDS.index("held")))
        .when(F.col("outcome") == "accepted", KINDS.index("accepted"))
        .otherwise(KINDS.index("rejected"))
    )
    plain = (
        (F.col("stage") == name, KINDS.index(name)) for name in STAGE_NAMES if name not in {"settled", "recovered"}
    )
    held = (F.col("stage") == "recovered") & (F.col("reason") != "held")
    first = F.when(held, KINDS.index("recovered"))
    return reduce(lambda so_far, case: so_far.when(*case), plain, first).otherwise(special)


def _in_buckets(rows: DataFrame) -> DataFrame:
    """Divides ranges that reach over several buckets."""
    first, last = (F.shiftright(name, _BUCKET_BITS) for name in ("first", "last"))
    buckets = F.when(first == last, F.array(first)).otherwise(F.sequence(first, last))
    begin = F.shiftleft("bucket", _BUCKET_BITS)
    end = begin + ((1 << _BUCKET_BITS) - 1)
    return (
        rows.withColumn("bucket", F.explode(buckets))
        .withColumn("first", F.greatest("first", begin))
        .withColumn("last", F.least("last", end))
    )


def _cutter(
    of_copies: Sequence[Measure], of_messages: Sequence[Measure]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def cut_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            table = pa.Table.from_batches(filled)
            rows = {name: table[name].to_numpy() for name in table.column_names}
            yield from _arrow(cut(rows, of_copies, of_messages, message_group=_MESSAGES))

    return cut_partition


def _arrow(segments: Mapping[str, Ints]) -> Iterator[pa.RecordBatch]:
    arrays = {name: pa.array(values, pa.int64(), mask=values == NOTHING) for name, values in segments.items()}
    yield from pa.table(arrays).to_batches(max_chunksize=_ROWS_OF_BATCH)
