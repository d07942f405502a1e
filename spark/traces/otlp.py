"""OTLP in JSON lines: one TracesData on each, as SDKs, collectors and Hopline itself write to files."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.traces.attributes import destination, operation, renamed
from spark.traces.span import SPANS

CORRUPT = "_corrupt"

# Numbers of 64 bits are strings in OTLP's JSON; some write numbers all the same, which become strings here.
_VALUE = (
    "STRUCT<stringValue STRING, boolValue STRING, intValue STRING, doubleValue STRING, bytesValue STRING, "
    "arrayValue STRING, kvlistValue STRING>"
)
_ATTRIBUTES = f"ARRAY<STRUCT<key STRING, value {_VALUE}>>"
_SPAN = (
    "STRUCT<traceId STRING, spanId STRING, parentSpanId STRING, name STRING, kind STRING, startTimeUnixNano STRING, "
    f"endTimeUnixNano STRING, attributes {_ATTRIBUTES}, status STRUCT<code STRING>, "
    f"links ARRAY<STRUCT<traceId STRING, spanId STRING, attributes {_ATTRIBUTES}>>, "
    f"events ARRAY<STRUCT<timeUnixNano STRING, name STRING, attributes {_ATTRIBUTES}>>>"
)
_LINE = (
    f"resourceSpans ARRAY<STRUCT<resource STRUCT<attributes {_ATTRIBUTES}>, "
    f"scopeSpans ARRAY<STRUCT<spans ARRAY<{_SPAN}>>>>>, {CORRUPT} STRING"
)

_KINDS = ("", "internal", "server", "client", "producer", "consumer")


def parsed(lines: DataFrame) -> DataFrame:
    """Lines of text (`value`) as TracesData, in `line`; `line._corrupt` has those that are not. Fields unknown here
    are passed over.
    """
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    return lines.select(F.from_json("value", _LINE, options).alias("line"))


def is_bad() -> Column:
    """Whether a line of `parsed` is no TracesData."""
    return F.col(f"line.{CORRUPT}").isNotNull() | F.col("line.resourceSpans").isNull()


def count() -> Column:
    """How many spans a line of `parsed` has."""
    scopes = F.flatten(_filled(F.transform("line.resourceSpans", lambda resource: resource["scopeSpans"])))
    return F.coalesce(F.size(F.flatten(_filled(F.transform(scopes, lambda scope: scope["spans"])))), F.lit(0))


def _filled(lists: Column) -> Column:
    return F.filter(lists, lambda one: one.isNotNull())


def spans(lines: DataFrame) -> DataFrame:
    """The spans of lines that could be parsed."""
    resources = lines.where(~is_bad()).select(F.inline("line.resourceSpans"))
    scopes = resources.select(attributes(F.col("resource.attributes")).alias("resource"), F.inline("scopeSpans"))
    flat = scopes.select("resource", F.explode("spans").alias("span"))
    return flat.select(*_columns()).select(*SPANS.names)


def attributes(pairs: Column) -> Column:
    """OTLP's list of key and value as a map of strings, by names of today."""
    value = ("stringValue", "boolValue", "intValue", "doubleValue", "bytesValue", "arrayValue", "kvlistValue")
    entries = F.transform(
        pairs,
        lambda pair: F.struct(
            pair["key"], F.coalesce(*(pair["value"][name] for name in value), F.lit("")).alias("value")
        ),
    )
    return renamed(F.map_from_entries(F.coalesce(entries, F.array().cast("array<struct<key:string,value:string>>"))))


def _columns() -> list[Column]:
    span = F.col("span")
    named = attributes(span["attributes"])
    begin, end = (span[name].cast("decimal(20,0)") for name in ("startTimeUnixNano", "endTimeUnixNano"))
    return [
        F.lower(span["traceId"]).alias("trace_id"),
        F.lower(span["spanId"]).alias("span_id"),
        F.coalesce(F.lower(span["parentSpanId"]), F.lit("")).alias("parent_id"),
        F.coalesce(span["name"], F.lit("")).alias("name"),
        _kind(span["kind"]).alias("kind"),
        F.coalesce(F.element_at("resource", "service.name"), F.lit("")).alias("service"),
        F.coalesce(F.element_at("resource", "service.instance.id"), F.lit("")).alias("instance"),
        F.timestamp_micros((begin / 1000).cast("long")).alias("start"),
        ((end - begin) / 1000).cast("long").alias("duration_us"),
        F.coalesce(span["status"]["code"].isin("2", "STATUS_CODE_ERROR"), F.lit(False)).alias("failed"),
        operation(named, F.coalesce(span["name"], F.lit(""))).alias("operation"),
        F.coalesce(F.element_at(named, "messaging.system"), F.lit("")).alias("system"),
        destination(named).alias("destination"),
        named.alias("attributes"),
        F.col("resource"),
        _links(span["links"]).alias("links"),
        _events(span["events"]).alias("events"),
    ]


def _kind(kind: Column) -> Column:
    """Kinds are numbers; older writers say SPAN_KIND_SERVER."""
    by_number = F.get(F.array(*(F.lit(name) for name in _KINDS)), F.expr("try_cast(span.kind AS INT)"))
    return F.coalesce(by_number, F.lower(F.regexp_replace(kind, "^SPAN_KIND_", "")), F.lit(""))


def _links(links: Column) -> Column:
    made = F.transform(
        links,
        lambda link: F.struct(
            F.lower(link["traceId"]).alias("trace_id"),
            F.lower(link["spanId"]).alias("span_id"),
            attributes(link["attributes"]).alias("attributes"),
        ),
    )
    return F.coalesce(made, F.array().cast(SPANS["links"].dataType))


def _events(events: Column) -> Column:
    made = F.transform(
        events,
        lambda event: F.struct(
            F.timestamp_micros((event["timeUnixNano"].cast("decimal(20,0)") / 1000).cast("long")).alias("time"),
            event["name"].alias("name"),
            attributes(event["attributes"]).alias("attributes"),
        ),
    )
    return F.coalesce(made, F.array().cast(SPANS["events"].dataType))
