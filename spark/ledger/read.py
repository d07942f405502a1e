"""Reads tables of the ledger: only the hours that are asked for, only files that are whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark.ledger.damaged import MOST_CHANGES
from spark.ledger.files import files_of, place
from spark.ledger.soundness import Refused, sort_out
from spark.schema import HEARD_AGAIN, SILENT, TABLES, arrow_schema


@dataclass(frozen=True, slots=True)
class Reading:
    """A table as far as it can be read."""

    table: DataFrame
    files: int
    rows: int  # in the files; those outside the time range are among them
    size: int  # of the files, in bytes
    refused: list[Refused] = field(default_factory=list)


def read_table(
    spark: SparkSession,
    ledger: str,
    name: str,
    since: datetime | None = None,
    until: datetime | None = None,
    damaged: Mapping[str, str] = MappingProxyType({}),
) -> Reading:
    """A table (`stages`, `ids`, `gaps`) of the ledger in the folder `ledger`, its rows of [since, until).

    Files that are being written are passed over; those that are truncated or of another schema are in `refused`, and so
    are those of `damaged`, which are known to be.
    """
    schema = TABLES[name]
    folder = place(ledger)
    for _ in range(MOST_CHANGES):
        sound, refused = sort_out(folder, files_of(folder, name, since, until), arrow_schema(schema), damaged)
        if not any(one.is_gone for one in refused):
            break
    paths = [folder.uri(file.path) for file in sound]
    table = spark.read.schema(schema).parquet(*paths) if paths else _nothing(spark, schema)
    rows = within(table, since, until)
    if name == "gaps":
        rows = _standing(rows)
    return Reading(rows, len(sound), sum(one.rows for one in sound), sum(one.size for one in sound), refused)


def read_stages(
    spark: SparkSession, ledger: str, since: datetime | None = None, until: datetime | None = None
) -> Reading:
    """The stages that messages reached in [since, until)."""
    return read_table(spark, ledger, "stages", since, until)


def within(table: DataFrame, since: datetime | None, until: datetime | None) -> DataFrame:
    """The rows whose time is in [since, until)."""
    if since is not None:
        table = table.where(F.col("time") >= F.lit(since))
    if until is not None:
        table = table.where(F.col("time") < F.lit(until))
    return table


def _standing(gaps: DataFrame) -> DataFrame:
    """Without those that were taken back: an instance was silent, then it was heard again, and its rows came."""
    reason, time = F.col("reason"), F.col("time")
    again = gaps.where(reason == HEARD_AGAIN).groupBy("instance").agg(F.max("time").alias("again"))
    over = (reason == HEARD_AGAIN) | ((reason == SILENT) & F.coalesce(time <= F.col("again"), F.lit(False)))
    return gaps.join(F.broadcast(again), "instance", "left").where(~over).select(*gaps.columns)


def _nothing(spark: SparkSession, schema: StructType) -> DataFrame:
    return spark.createDataFrame([], schema)
