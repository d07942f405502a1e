"""How far the clocks of a gateway and a queue process are apart, from messages that went both ways between them.

A message cannot arrive before it leaves. The least time that any took one way is the clocks' difference and the least
delay; the other way it is the delay without the difference. Half of what these two differ by is the difference of the
clocks, half of their sum is how far that may be wrong: what NTP does, on messages that were sent anyway.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructType

from spark.expressions import messages, share, total
from spark.job import Table, column

# step: the instance that begins it, when; the instance that ends it, when
_STEPS = {
    "receive": ("receiver", "received_at", "router", "routed_at"),
    "enqueue": ("router", "routed_at", "owner", "enqueued_at"),
    "confirm": ("owner", "enqueued_at", "confirmer", "confirmed_at"),
    "wait": ("owner", "enqueued_at", "deliverer", "delivered_at"),
    "send": ("deliverer", "delivered_at", "sender", "sent_at"),
}
_THERE = ("enqueue",)
_SENT = ("send",)
_CONFIRMED = ("confirm",)

STEPS = Table(
    StructType(
        [
            column("step", StringType(), "receive, enqueue, confirm, wait, send"),
            column("source", StringType(), "instance that tells of its beginning"),
            column("target", StringType(), "instance that tells of its end"),
            column("messages", LongType(), ""),
            column("negative", LongType(), "messages for which it ended before it began, by these clocks"),
            column("negative_share", DoubleType(), ""),
            column("least_us", LongType(), "the shortest; below 0 only if clocks disagree, or in transactions"),
        ]
    ),
    ("-negative", "step", "source", "target"),
)
CLOCKS = Table(
    StructType(
        [
            column("gateway", StringType(), "instance"),
            column("queue", StringType(), "instance"),
            column(
                "offset_us",
                LongType(),
                "how far the queue process's clock is ahead; null: messages went one way "
                "only, or no difference makes these times possible",
            ),
            column("uncertain_us", LongType(), "the truth is at most this far from it"),
            column("agree", BooleanType(), "the difference is within what is uncertain"),
        ]
    ),
    ("agree", "gateway", "queue"),
)


def steps(segments: DataFrame, ids: DataFrame) -> DataFrame:
    """How long each step took between each two instances. `ids` names instances."""
    taken = F.array(
        *(
            F.struct(
                F.lit(step).alias("step"),
                F.col(source).alias("source_id"),
                F.col(target).alias("target_id"),
                (F.col(end) - F.col(begin)).alias("took"),
            )
            for step, (source, begin, target, end) in _STEPS.items()
        )
    )
    # A step that happened twice is recorded by several instances, and which time belongs to which cannot be known.
    once = (F.col("enqueued") <= 1) & (F.col("delivered") <= 1) & (F.col("sent") <= 1)
    told = segments.where(once).select(messages().alias("messages"), F.inline(taken)).where("took is not null")
    counted = told.groupBy("step", "source_id", "target_id").agg(
        F.sum("messages").alias("messages"),
        total(F.col("took") < 0, F.col("messages")).alias("negative"),
        F.min("took").alias("least_us"),
    )
    sources, targets = (
        ids.select(F.col("instance").alias(name), F.col("id").alias(f"{name}_id")) for name in ("source", "target")
    )
    named = counted.join(F.broadcast(sources), "source_id").join(F.broadcast(targets), "target_id")
    return named.withColumn("negative_share", share(F.col("negative"), F.col("messages")))


def clocks(taken: DataFrame) -> DataFrame:
    """What the shortest steps say of the clocks of each gateway and queue process."""
    there = F.col("step").isin(*_THERE)
    of_clocks = taken.where(there | F.col("step").isin(*_SENT, *_CONFIRMED))
    pairs = of_clocks.groupBy(
        F.when(there, F.col("source")).otherwise(F.col("target")).alias("gateway"),
        F.when(there, F.col("target")).otherwise(F.col("source")).alias("queue"),
    ).agg(*(_least(names, alias) for names, alias in ((_THERE, "there"), (_SENT, "sent"), (_CONFIRMED, "confirmed"))))
    # A gateway hears that a transaction is committed before queues have what is in it: what was sent says more.
    back = F.coalesce("sent", "confirmed")
    pairs = pairs.withColumn("back", F.when(F.col("there") + back >= 0, back))
    uncertain = F.ceil((F.col("there") + F.col("back")) / 2)
    return pairs.withColumns(
        {"offset_us": F.round((F.col("there") - F.col("back")) / 2).cast("long"), "uncertain_us": uncertain}
    ).withColumn("agree", F.abs("offset_us") <= F.col("uncertain_us"))


def _least(names: tuple[str, ...], alias: str) -> Column:
    return F.min(F.when(F.col("step").isin(*names), F.col("least_us"))).alias(alias)
