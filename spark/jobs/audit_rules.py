"""The rules of the audit, each an expression over a segment: what became of its messages, and what is wrong with it."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark.schema import REASONS


def origin() -> Column:
    """What was promised of the messages: only `confirmed` and `dead_letter` must not be lost."""
    return (
        F.when(_some("confirmed"), "confirmed")
        .when(_some("successor"), "dead_letter")
        .when(_some("rolled_back"), "rolled_back")
        .when(_some("refused"), "refused")
        .when(_some("received"), "unconfirmed")
        .otherwise("earlier")  # received before the time that is looked at, or in a gap
    )


def fate() -> Column:
    """What became of the messages."""
    return F.when(F.col("copy"), _fate_of_copy()).otherwise(_fate_of_message())


def reason() -> Column:
    """Why; "" where the fate says it all."""
    code = reduce(
        lambda so_far, case: F.when((F.col("fate") == case[0]) & case[1], F.col(case[2])).otherwise(so_far),
        reversed(_reasons_of_fates()),
        F.lit(0),
    )
    never = F.when(F.col("copy"), "never_enqueued").otherwise("never_routed")
    missing = F.when(_placed(), "not_recovered").otherwise(never)
    words = F.array(*(F.lit(word) for word in REASONS))
    return F.when(F.col("fate").isin("lost", "unknown"), missing).otherwise(F.get(words, code.cast("int")))


def _reasons_of_fates() -> tuple[tuple[str, Column, str], ...]:
    """Fates, whose they are, and the columns with their reasons."""
    anyone, copies = F.lit(True), F.col("copy")
    return (
        ("dead_lettered", anyone, "dead_reason"),
        ("expired", anyone, "expired_reason"),
        ("dropped", copies, "dropped_reason"),
        ("dropped", ~copies, "dropped_unplaced_reason"),
        ("returned", anyone, "returned_unplaced_reason"),
        ("refused", anyone, "refused_unplaced_reason"),
    )


def duplicate() -> Column:
    """How the messages came twice; "" if they did not."""
    ends = ("accepted", "expired", "dead_lettered", "dropped")
    twice = reduce(lambda so_far, name: so_far | (F.col(name) > 1), ends, F.col("rejected") > 1)
    accepted_and_more = _some("accepted") & (
        F.col("rejected") + F.col("expired") + F.col("dead_lettered") + F.col("dropped") > 0
    )
    # What an owner lost without having confirmed it is sent to the next one, and enqueued again: under another epoch.
    epochs = F.col("last_enqueued_epoch") - F.col("first_enqueued_epoch") + 1
    found_before = F.coalesce(F.col("last_enqueued_epoch") >= F.col("recovered_epoch"), F.lit(False))
    again = (F.col("enqueued") > 1) & ((F.col("enqueued") > epochs) | found_before)
    return (
        F.when(twice | accepted_and_more, "settled_twice")
        .when(F.col("delivered_moment") > F.col("ended_moment"), "delivered_after_settled")
        .when(again, "enqueued_twice")
        .otherwise("")
    )


def _some(name: str) -> Column:
    return F.col(name) > 0


def _placed() -> Column:
    return _some("enqueued") | _some("recovered")


def _fate_of_copy() -> Column:
    ended = (
        F.when(_some("dead_lettered"), "dead_lettered")
        .when(_some("accepted"), "settled")
        .when(_some("expired"), "expired")
        .when(_some("dropped"), "dropped")
        .when(_some("rejected"), "rejected")
    )
    # Whoever takes a partition tells of everything in it: what the last owner does not have is gone.
    gone = _placed() & (F.col("epoch") < F.col("current_epoch"))
    # Where a queue process's word is missing, it may have been that the message was settled.
    unsure = F.col("partition_gap") >= F.col("last_time")
    # Nobody has told of the partition since its owner was killed: what was in it may be, or may have been settled.
    left_alone = _placed() & F.col("owner_ended").isNotNull()
    held = F.col("delivered_moment") > F.coalesce("returned_moment", F.lit(0))
    return (
        ended.when(gone, _missing(unsure, F.greatest("last_time", "term_began")))
        .when(left_alone, "unknown")
        .when(_placed() & held, "unsettled")
        .when(_placed(), "waiting")
        .when(~_promised() & F.col("origin").isin("refused", "rolled_back"), F.col("origin"))
        .when(~_promised(), "not_enqueued")
        .otherwise(_missing(F.col("any_gap") >= F.col("last_time"), F.col("last_time")))
    )


def _fate_of_message() -> Column:
    return (
        F.when(_some("returned"), "returned")
        .when(_some("dropped_unrouted"), "dropped")
        .when(~_promised() & F.col("origin").isin("refused", "rolled_back"), F.col("origin"))
        .when(~_promised(), "not_enqueued")
        .otherwise(_missing(F.col("any_gap") >= F.col("message_time"), F.col("message_time")))
    )


def _promised() -> Column:
    return F.col("origin").isin("confirmed", "dead_letter")


def _missing(unsure: Column, since: Column) -> Column:
    recent = since > F.col("record_end") - F.col("grace")
    return F.when(recent, "in_flight").when(F.coalesce(unsure, F.lit(False)), "unknown").otherwise("lost")
