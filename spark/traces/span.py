"""What a span is here, wherever it comes from."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

ATTRIBUTES = MapType(StringType(), StringType())

LINKS = ArrayType(
    StructType(
        [
            StructField("trace_id", StringType()),
            StructField("span_id", StringType()),
            StructField("attributes", ATTRIBUTES),
        ]
    )
)

EVENTS = ArrayType(
    StructType(
        [
            StructField("time", TimestampType()),
            StructField("name", StringType()),
            StructField("attributes", ATTRIBUTES),
        ]
    )
)

SPANS = StructType(
    [
        StructField("trace_id", StringType()),  # lower-case hex
        StructField("span_id", StringType()),
        StructField("parent_id", StringType()),  # "" for the first of a trace
        StructField("name", StringType()),
        StructField("kind", StringType()),  # internal, server, client, producer, consumer; "" where it is not said
        StructField("service", StringType()),
        StructField("instance", StringType()),
        StructField("start", TimestampType()),
        StructField("duration_us", LongType()),
        StructField("failed", BooleanType()),
        StructField("operation", StringType()),  # create, send, receive, process, settle; "" for what is no messaging
        StructField("system", StringType()),
        StructField("destination", StringType()),
        StructField("attributes", ATTRIBUTES),  # by their names of today
        StructField("resource", ATTRIBUTES),
        StructField("links", LINKS),
        StructField("events", EVENTS),
    ]
)
