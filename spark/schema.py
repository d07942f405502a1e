"""The tables of the ledger as services file them: services/common/ledger/README.md says what each column means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    import pyarrow as pa

RANGE = StructType([StructField("first", LongType()), StructField("last", LongType())])

_STRINGS_OF_STAGES = ("virtual_host", "exchange", "routing_key", "queue")

STAGES = StructType(
    [
        StructField("time", TimestampType()),
        StructField("stage", StringType()),
        StructField("service", StringType()),
        StructField("instance", StringType()),
        StructField("row", LongType()),
        *(StructField(name, StringType()) for name in _STRINGS_OF_STAGES),
        StructField("partition", IntegerType()),
        StructField("epoch", LongType()),
        *(StructField(name, StringType()) for name in ("protocol", "connection", "client", "consumer")),
        StructField("attempt", IntegerType()),
        *(StructField(name, StringType()) for name in ("outcome", "reason", "target")),
        StructField("count", IntegerType()),
        StructField("bytes", LongType()),
        StructField("first_uid", LongType()),
        StructField("last_uid", LongType()),
        StructField("uids", ArrayType(RANGE)),
        StructField("successors", ArrayType(RANGE)),
    ]
)

IDS = StructType(
    [
        StructField("id", StringType()),
        StructField("kind", StringType()),
        StructField("first_uid", LongType()),
        StructField("last_uid", LongType()),
        StructField("time", TimestampType()),
    ]
)

GAPS = StructType(
    [
        StructField("time", TimestampType()),
        StructField("service", StringType()),
        StructField("instance", StringType()),
        StructField("first_row", LongType()),
        StructField("last_row", LongType()),
        StructField("count", LongType()),
        StructField("reason", StringType()),
        StructField("since", TimestampType()),
    ]
)

# Of the reasons of gaps: an instance was missed; and it was heard again, so that it was not dead.
SILENT, HEARD_AGAIN = "silent", "heard_again"

TABLES = {"stages": STAGES, "ids": IDS, "gaps": GAPS}

# Columns that older releases did not file: there they are null.
LATER = frozenset({"since"})

STAGE_NAMES = (
    "received",
    "routed",
    "returned",
    "enqueued",
    "persisted",
    "confirmed",
    "refused",
    "delivered",
    "sent",
    "settled",
    "requeued",
    "expired",
    "dead_lettered",
    "dropped",
    "recovered",
    "rolled_back",
)


def arrow_schema(table: StructType) -> pa.Schema:
    """The same columns as Arrow (and so Parquet) has them."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - needs pyarrow, which workers may lack

    return to_arrow_schema(table, timezone="UTC")


# Why a message was refused or left its queue; new ones come last, for numbers are kept. What is not among them, of a
# plug-in perhaps, is "other".
REASONS = (
    "",
    "other",
    "no_route",
    "no_consumers",
    "overflow",
    "unavailable",
    "message_ttl",
    "queue_ttl",
    "rejected",
    "expired",
    "maxlen",
    "delivery_limit",
    "unroutable",
    "purged",
    "queue_deleted",
    "no_owner",
    "no_exchange",
    "access_refused",
    "invalid",
    "replaced",
    "managed",
    "duplicate",
    "moved",
    "copied",
)
