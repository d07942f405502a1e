"""The hops of a message's way, each between two times of its journey."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.journeys import journeys, kinds
from spark.ranges import Measure


@dataclass(frozen=True, slots=True)
class Hop:
    """What happens between two stages; its latency is the time between."""

    name: str
    begin: str
    end: str


HOPS = (
    Hop("route", "received_at", "routed_at"),
    Hop("enqueue", "routed_at", "enqueued_at"),
    Hop("persist", "enqueued_at", "persisted_at"),
    Hop("confirm", "received_at", "confirmed_at"),
    Hop("wait", "enqueued_at", "delivered_at"),
    Hop("send", "delivered_at", "sent_at"),
    Hop("settle", "sent_at", "settled_at"),
    Hop("end_to_end", "received_at", "settled_at"),
)

OF_COPIES = (
    Measure("partition", kinds("routed", "enqueued"), "max", "partition"),
    *(
        Measure(f"{name}_at", kinds(name), "min", "time")
        for name in ("routed", "enqueued", "persisted", "delivered", "sent")
    ),
    Measure("settled_at", kinds("accepted", "rejected"), "min", "time"),
)
OF_MESSAGES = tuple(Measure(f"{name}_at", kinds(name), "min", "time") for name in ("received", "confirmed"))


def timed(stages: DataFrame) -> DataFrame:
    """Segments of copies with the first time of each stage in µs, null where it was not reached."""
    return journeys(stages, OF_COPIES, OF_MESSAGES).where("copy")


def taken(segments: DataFrame) -> DataFrame:
    """A row for each hop of a segment: `place`, `partition`, `hop`, `took` (µs) and `messages`."""
    hops = F.inline(F.array(*(F.struct(F.lit(hop.name).alias("hop"), _took(hop).alias("took")) for hop in HOPS)))
    return segments.select("place", "partition", "messages", hops).where("took is not null")


def _took(hop: Hop) -> Column:
    return F.col(hop.end) - F.col(hop.begin)
