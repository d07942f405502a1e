"""Audit: what became of every message that its publisher was told is safe, and of dead letters; in each queue."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StringType, StructType, TimestampType

from spark.as_of import as_of
from spark.job import Inputs, Job, Ranked, Table, column
from spark.jobs.audit_rules import (
    FAULTS,
    LOST,
    LOST_PERSISTED,
    LOST_TRANSIENT,
    SUSPECT,
    UNKNOWN,
    anybodys,
    duplicate,
    fate,
    found_gap,
    gap,
    hiding_gap,
    hiding_maker,
    hiding_owner,
    last_owner,
    maker,
    origin,
    promised,
    reason,
    unread_file,
)
from spark.journeys import Plain, journeys, kinds
from spark.places import (
    BLAMED,
    all_gaps,
    all_terms,
    ending_alone,
    gaps_of_makers,
    gaps_of_queues,
    names,
    places,
    record,
    table_of,
)
from spark.ranges import Bools, Columns, Measure
from spark.terms import Gap, Term, troubled
from spark.unnamed import with_queues

ENDS = ("accepted", "rejected", "expired", "dead_lettered", "moved", "dropped")
_ENDED = kinds(*ENDS)
_ENDED_BUT_DROPPED = kinds(*(name for name in ENDS if name != "dropped"))
_GOING_ON = kinds("routed", "enqueued", "delivered", "requeued", "recovered", "held")

OF_COPIES = (
    *(Measure(name, kinds(name)) for name in ("enqueued", "persisted", "sent", *ENDS)),
    Measure("recovered", kinds("recovered", "held")),
    Measure("partition", kinds("routed", "enqueued", "recovered", "held", "delivered", "sent"), "max", "partition"),
    Measure("epoch", kinds("enqueued", "recovered", "held", "delivered"), "max", "epoch"),
    Measure("first_enqueued_epoch", kinds("enqueued"), "min", "epoch"),
    Measure("last_enqueued_epoch", kinds("enqueued"), "max", "epoch"),
    Measure("enqueued_moment", kinds("enqueued"), "max", "moment"),
    Measure("recovered_moment", kinds("recovered", "held"), "min", "moment"),
    Measure("in_doubt", kinds("in_doubt")),
    Measure("let_go_epoch", kinds("let_go"), "max", "epoch"),
    Measure("delivered_moment", kinds("delivered"), "max", "moment"),
    Measure("held_moment", kinds("held"), "max", "moment"),
    Measure("returned_moment", kinds("requeued", "recovered"), "max", "moment"),
    Measure("delivered_time", kinds("delivered"), "max", "time"),
    Measure("ended_moment", _ENDED_BUT_DROPPED, "min", "moment"),
    Measure("dropped_moment", kinds("dropped"), "min", "moment"),
    Measure("dropped_time", kinds("dropped"), "min", "time"),
    Measure("first_ended_epoch", _ENDED, "min", "epoch"),
    Measure("last_ended_epoch", _ENDED, "max", "epoch"),
    Measure("expired_reason", kinds("expired"), "max", "reason"),
    Measure("dropped_reason", kinds("dropped"), "max", "reason"),
    Measure("least_dropped_reason", kinds("dropped"), "min", "reason"),
    Measure("dead_reason", kinds("dead_lettered"), "max", "reason"),
    Measure("last_time", (*_GOING_ON, *_ENDED), "max", "time"),
)
OF_MESSAGES = (
    *(Measure(name, kinds(name)) for name in ("received", "confirmed", "refused", "rolled_back", "successor")),
    Measure("successor_reason", kinds("successor"), "max", "reason"),
    Measure("returned", kinds("returned")),
    Measure("dropped_unrouted", kinds("dropped")),
    *(Measure(f"{name}_unplaced_reason", kinds(name), "max", "reason") for name in ("returned", "dropped", "refused")),
    Measure("began", kinds("received", "successor"), "min", "time"),
    Measure("message_time", kinds("received", "confirmed", "successor"), "max", "time"),
)


def _settled_and_done(segments: Columns) -> Bools:
    """Whether copies had one end, after which nothing can be missing, and nothing that could have made them two."""
    ends = sum(segments[name] for name in ENDS)
    perhaps_letters = segments["expired"] + segments["rejected"]
    is_last = (ends == 1) & (perhaps_letters == 0)
    ended = np.maximum(segments["ended_moment"], segments["dropped_moment"])  # there is one of them
    done: Bools = is_last & (segments["enqueued"] <= 1) & (segments["delivered_moment"] <= ended)
    return done


PLAIN = Plain(
    _settled_and_done,
    (
        "persisted", "sent", "partition", "epoch", "first_enqueued_epoch", "last_enqueued_epoch", "enqueued_moment",
        "recovered_moment", "let_go_epoch", "delivered_moment", "delivered_time", "held_moment", "returned_moment",
        "ended_moment", "dropped_moment", "dropped_time", "first_ended_epoch", "last_ended_epoch", "last_time", "began",
        "message_time",
    ),
)  # fmt: skip

# A killed process is missed after 30 s, and its gap is filed some ten seconds later: until then the messages of its
# last rows would pass for lost.
GRACE_SECONDS = 60.0

ACCOUNT = (
    "virtual_host", "queue", "first_uid", "last_uid", "origin", "fate", "reason", "duplicate", "gap", "last_time",
    "messages",
)  # fmt: skip

# Faults first: a console shows few rows.
_WORST = (Ranked("fate", (LOST_PERSISTED, LOST)), "-duplicate", Ranked("fate", (UNKNOWN, LOST_TRANSIENT)))

FATES = Table(
    StructType(
        [
            column("virtual_host", StringType(), ""),
            column("queue", StringType(), '"" for messages that got into none'),
            column(
                "origin",
                StringType(),
                "confirmed, dead_letter, moved, copied, unconfirmed, refused, rolled_back, earlier",
            ),
            column(
                "fate",
                StringType(),
                "settled, waiting, unsettled, expired, dead_lettered, moved, dropped, rejected, returned, refused, "
                "rolled_back, not_enqueued, in_flight (too young to judge), lost (promised, and in no queue ever), "
                "lost (persisted) (was on disk), lost (transient) (was in memory only, as promised), "
                "unknown (a gap, or a file that cannot be read, may hide their end)",
            ),
            column(
                "reason",
                StringType(),
                "as in the ledger; of lost and unknown: never_routed, never_enqueued, not_recovered by the next owner, "
                "no_owner (its owner lost the partition, and said so), not_heard_of since",
            ),
            column("duplicate", StringType(), "enqueued_twice, settled_twice, delivered_after_settled"),
            column(
                "gap",
                StringType(),
                "of the record that is to blame, or the file that cannot be read: of unknown, and of lost (transient); "
                "of expired and rejected the one right after, which may hide that they were dead-lettered",
            ),
            column("messages", LongType(), ""),
        ]
    ),
    (*_WORST, "virtual_host", "queue", "-messages"),
)
SUSPECTS = Table(
    StructType(
        [
            *FATES.schema.fields[:2],
            column("first_uid", LongType(), ""),
            column("last_uid", LongType(), "inclusive"),
            *FATES.schema.fields[2:],
            column("last_time", TimestampType(), "when the ledger last tells of them"),
        ]
    ),
    (*_WORST, "virtual_host", "queue", "first_uid"),
)
VERDICT = Table(
    StructType(
        [
            column(
                "whole",
                BooleanType(),
                "the record has no gap, and all of it could be read: what is not lost or duplicated here truly is not",
            ),
            column(
                "promised",
                LongType(),
                "in queues, of confirmed messages, dead letters, copies made by hand; of what was moved, where it is",
            ),
            column("lost", LongType(), "a fault: lost, and lost (persisted)"),
            column("lost_transient", LongType(), "were in memory only, of a process that is gone"),
            column("unknown", LongType(), "lost, or settled in a gap of the record, or waiting since"),
            column("in_flight", LongType(), "too young to judge"),
            column("duplicated", LongType(), ""),
            column("gaps", LongType(), "of the record"),
            column("missing_rows", LongType(), "in these gaps, as far as it is known"),
            column(
                "unread", LongType(), "files of the record that cannot be read: what only they tell is missing here"
            ),
            column("begin", TimestampType(), "of the record"),
            column("end", TimestampType(), ""),
            column(
                "as_of", TimestampType(), "when it is judged: what nothing was heard of for long by then is missing"
            ),
            column("as_of_why", StringType(), "which moment that is"),
        ]
    )
)


def transform(inputs: Inputs) -> dict[str, DataFrame]:
    """The account of every message."""
    moment = as_of(inputs.options.get("as-of", ""), live=inputs.live, now=datetime.now(UTC))
    known, gaps = places(inputs.stages), all_gaps(inputs.gaps)
    terms, extent = all_terms(known, gaps), record(known, moment, inputs.unread)
    segments = journeys(_needed(with_queues(inputs.stages, known), terms), OF_COPIES, OF_MESSAGES, plain=PLAIN)
    judged = judge(segments, Evidence(known, terms, gaps, extent), inputs.number("grace", GRACE_SECONDS))
    # One pass over everything gives this small table, from which the others come without another shuffle.
    return tables(account(judged, names(known)).coalesce(1).cache(), inputs.gaps, extent)


def _needed(stages: DataFrame, terms: Sequence[Term]) -> DataFrame:
    """Whether a copy was on disk, and was sent, matters where its owner was not always the same and whole."""
    evidence = F.col("stage").isin("persisted", "sent")
    return stages.where(~evidence | F.col("partition").isin(troubled(terms)))


def tables(accounts: DataFrame, gaps: DataFrame, extent: DataFrame) -> dict[str, DataFrame]:
    """What the audit gives, from accounts."""
    columns = [field.name for field in FATES.schema]
    fates = accounts.groupBy(*columns[:-1]).agg(F.sum("messages").alias("messages"))
    suspects = accounts.where("first_uid is not null").withColumn("last_time", F.timestamp_micros("last_time"))
    return {"fates": fates, "suspects": suspects, "verdict": verdict(accounts, gaps, extent)}


class Evidence(NamedTuple):
    """What segments are judged by: `spark.places` says what each is."""

    places: DataFrame
    terms: Sequence[Term]
    gaps: Sequence[Gap]
    extent: DataFrame


def judge(segments: DataFrame, evidence: Evidence, grace: float) -> DataFrame:
    """Adds what became of each segment."""
    by_term = {"epoch": F.coalesce("epoch", F.lit(0))}
    owners = table_of(evidence.terms, segments.sparkSession)
    told = (
        segments.withColumns(by_term)
        .join(F.broadcast(owners.drop("own_gaps")), ["partition", "epoch"], "left")
        .join(F.broadcast(ending_alone(evidence.places)), "place", "left")
        .crossJoin(F.broadcast(evidence.extent))
        .withColumn("grace", F.lit(int(grace * 1e6)))
        .withColumn("origin", origin())
    )
    return (
        _with_gaps(told, owners, evidence.gaps)
        .withColumn("hiding_gap", hiding_gap())
        .withColumn("found_gap", found_gap())
        .withColumn("hiding_owner", hiding_owner())
        .withColumn("hiding_maker", hiding_maker())
        .withColumn("fate", fate())
        .withColumn("unread_file", unread_file())
        .withColumn("fate", F.when(F.col("unread_file").isNotNull(), UNKNOWN).otherwise(F.col("fate")))
        .withColumn("reason", reason())
        .withColumn("duplicate", duplicate())
        .withColumn("gap", F.coalesce("unread_file", gap()))
    )


def _with_gaps(segments: DataFrame, owners: DataFrame, gaps: Sequence[Gap]) -> DataFrame:
    """With the gaps that matter to few: these can be very many, and are copied with each row that has them."""
    if not gaps:
        return segments.withColumns(dict.fromkeys(("own_gaps", "maker_gaps", "queue_gaps"), F.lit(None).cast(BLAMED)))
    spark = segments.sparkSession
    own = owners.select("partition", F.col("epoch").alias("last_owner"), "own_gaps")
    return (
        segments.withColumns({"last_owner": last_owner(), "maker": maker(), "anybodys": anybodys()})
        .join(F.broadcast(own), ["partition", "last_owner"], "left")
        .join(F.broadcast(gaps_of_makers(gaps, spark)), "maker", "left")
        .join(F.broadcast(gaps_of_queues(gaps, spark)), "anybodys", "left")
    )


def account(judged: DataFrame, queues: DataFrame, *keys: str) -> DataFrame:
    """Counts messages of one account, those under suspicion range by range; apart by `keys`."""
    suspect = F.col("fate").isin(*SUSPECT) | (F.col("duplicate") != "")
    ranges = [
        F.when(suspect, F.col(name)).alias(called)
        for name, called in (("first", "first_uid"), ("last", "last_uid"), ("last_time", "last_time"))
    ]
    of = ("origin", "fate", "reason", "duplicate", "gap")
    counted = judged.groupBy("place", *keys, *of, *ranges).agg(F.sum("messages").alias("messages"))
    named = counted.join(F.broadcast(queues), "place", "left")
    filled = {name: F.coalesce(name, F.lit("")) for name in ("virtual_host", "queue")}
    return named.withColumns(filled).select(*keys, *ACCOUNT)


def verdict(accounts: DataFrame, gaps: DataFrame, extent: DataFrame) -> DataFrame:
    """The account in one row."""
    here = promised() & (F.col("fate") != "moved")  # where they went they are promised as well

    def total(which: Column, name: str) -> Column:
        return F.coalesce(F.sum(F.when(which, F.col("messages"))), F.lit(0)).alias(name)

    counted = accounts.agg(
        total(here, "promised"),
        total(F.col("fate").isin(*FAULTS), "lost"),
        total(F.col("fate") == LOST_TRANSIENT, "lost_transient"),
        *(total(F.col("fate") == name, name) for name in (UNKNOWN, "in_flight")),
        total(F.col("duplicate") != "", "duplicated"),
    )
    missing = gaps.agg(
        F.count("*").alias("gaps"), F.coalesce(F.sum(F.greatest("count", F.lit(0))), F.lit(0)).alias("missing_rows")
    )
    return (
        counted.crossJoin(missing)
        .crossJoin(extent)
        .withColumn("whole", (F.col("gaps") == 0) & (F.col("unread") == 0))
        .withColumn("begin", F.timestamp_micros("record_begin"))
        .withColumn("end", F.timestamp_micros("record_end"))
        .withColumn("as_of", F.timestamp_micros("as_of"))
    )


JOB = Job(
    "audit",
    {"verdict": VERDICT, "fates": FATES, "suspects": SUSPECTS},
    transform,
    frozenset({"stages", "gaps"}),
    {
        "grace": "seconds before the moment of judgement in which nothing is called lost: 60",
        "as-of": "the moment of judgement: now (of a live record), end (of the record, for files that are not), a time",
    },
)
