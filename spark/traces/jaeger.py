"""Jaeger's JSON, as its UI and its API give traces: one document in a file."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.traces.attributes import destination, operation, renamed
from spark.traces.span import ATTRIBUTES, SPANS

CORRUPT = "_corrupt"

_TAGS = "ARRAY<STRUCT<key STRING, value STRING>>"
_SPAN = (
    "STRUCT<traceID STRING, spanID STRING, parentSpanID STRING, operationName STRING, startTime LONG, duration LONG, "
    "processID STRING, references ARRAY<STRUCT<refType STRING, traceID STRING, spanID STRING>>, "
    f"tags {_TAGS}, logs ARRAY<STRUCT<timestamp LONG, fields {_TAGS}>>>"
)
_DOCUMENT = (
    f"data ARRAY<STRUCT<spans ARRAY<{_SPAN}>, processes MAP<STRING, STRUCT<serviceName STRING, tags {_TAGS}>>>>, "
    f"{CORRUPT} STRING"
)


def parsed(documents: DataFrame) -> DataFrame:
    """Whole files of text (`value`) as Jaeger's documents, in `document`; `document._corrupt` has what is none."""
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    return documents.select(F.from_json("value", _DOCUMENT, options).alias("document"))


def is_bad() -> Column:
    """Whether a file of `parsed` is none of Jaeger's."""
    return F.col(f"document.{CORRUPT}").isNotNull() | F.col("document.data").isNull()


def count() -> Column:
    """How many spans a document of `parsed` has."""
    return F.coalesce(F.size(F.flatten(F.transform("document.data", lambda trace: trace["spans"]))), F.lit(0))


def spans(documents: DataFrame) -> DataFrame:
    """The spans of documents that could be parsed; ids are filled up to the length that OTLP has."""
    traces = documents.where(~is_bad()).select(F.inline("document.data"))
    flat = traces.select(F.explode("spans").alias("span"), "processes")
    process = F.element_at("processes", F.col("span.processID"))
    return flat.select("span", process.alias("process")).select(*_columns()).select(*SPANS.names)


def _columns() -> list[Column]:
    span, named = F.col("span"), _tags(F.col("span.tags"))
    parent = F.filter(span["references"], _is_parent)
    return [
        _trace_id(span["traceID"]).alias("trace_id"),
        _span_id(span["spanID"]).alias("span_id"),
        F.coalesce(_span_id(F.get(parent, F.lit(0))["spanID"]), _span_id(span["parentSpanID"]), F.lit("")).alias(
            "parent_id"
        ),
        F.coalesce(span["operationName"], F.lit("")).alias("name"),
        F.coalesce(F.element_at(named, "span.kind"), F.lit("")).alias("kind"),
        F.coalesce(F.col("process.serviceName"), F.lit("")).alias("service"),
        F.coalesce(F.element_at(_tags(F.col("process.tags")), "service.instance.id"), F.lit("")).alias("instance"),
        F.timestamp_micros(span["startTime"]).alias("start"),
        span["duration"].alias("duration_us"),
        _failed(named).alias("failed"),
        operation(named, F.coalesce(span["operationName"], F.lit(""))).alias("operation"),
        F.coalesce(F.element_at(named, "messaging.system"), F.lit("")).alias("system"),
        destination(named).alias("destination"),
        named.alias("attributes"),
        _tags(F.col("process.tags")).alias("resource"),
        _links(span["references"]).alias("links"),
        _events(span["logs"]).alias("events"),
    ]


def _is_parent(reference: Column) -> Column:
    return (reference["refType"] == "CHILD_OF") & (reference["traceID"] == F.col("span.traceID"))


def _failed(tags: Column) -> Column:
    said = F.element_at(tags, "error") == "true"
    return F.coalesce(said | (F.element_at(tags, "otel.status_code") == "ERROR"), said, F.lit(False))


def _trace_id(text: Column) -> Column:
    return F.lpad(F.lower(text), 32, "0")


def _span_id(text: Column) -> Column:
    return F.lpad(F.lower(text), 16, "0")


def _tags(tags: Column) -> Column:
    entries = F.transform(tags, lambda tag: F.struct(tag["key"], F.coalesce(tag["value"], F.lit("")).alias("value")))
    nothing = F.array().cast("array<struct<key:string,value:string>>")
    return renamed(F.map_from_entries(F.coalesce(entries, nothing)))


def _links(references: Column) -> Column:
    """References that are no parent are links: Jaeger makes references of OpenTelemetry's links."""
    made = F.transform(
        F.filter(references, lambda one: ~_is_parent(one)),
        lambda one: F.struct(
            _trace_id(one["traceID"]).alias("trace_id"),
            _span_id(one["spanID"]).alias("span_id"),
            F.create_map().cast(ATTRIBUTES).alias("attributes"),
        ),
    )
    return F.coalesce(made, F.array().cast(SPANS["links"].dataType))


def _events(logs: Column) -> Column:
    made = F.transform(
        logs,
        lambda log: F.struct(
            F.timestamp_micros(log["timestamp"]).alias("time"),
            F.coalesce(F.element_at(_tags(log["fields"]), "event"), F.lit("")).alias("name"),
            _tags(log["fields"]).alias("attributes"),
        ),
    )
    return F.coalesce(made, F.array().cast(SPANS["events"].dataType))
