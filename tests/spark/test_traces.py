from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark.registry import job
from spark.run import Sources, run
from spark.traces.edges import edges
from spark.traces.read import read_spans

START = 1_769_860_800_000_000_000  # ns
APP, BROKER = "a" * 32, "b" * 32


def attributes(**values: Any) -> list[dict[str, Any]]:
    kinds = {bool: "boolValue", int: "intValue", str: "stringValue"}
    # 64-bit numbers are strings in OTLP's JSON.
    said = {name: str(value) if type(value) is int else value for name, value in values.items()}
    return [{"key": name.replace("__", "."), "value": {kinds[type(values[name])]: said[name]}} for name in values]


def span(
    trace: str, number: int, parent: int = 0, links: list[dict[str, Any]] | None = None, **fields: Any
) -> dict[str, Any]:
    said = fields.pop("attributes", {})
    return {
        "traceId": trace.upper(),
        "spanId": f"{number:016X}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "startTimeUnixNano": str(START),
        "endTimeUnixNano": str(START + 5_000_000),
        "kind": 1,
        "attributes": attributes(**said),
        "links": links or [],
        "somethingNew": {"of": "a later version"},
        **fields,
    }


def line(service: str, *spans: dict[str, Any]) -> str:
    resource = {"attributes": attributes(service__name=service)}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]})


LINES = [
    line("shop", span(APP, 1, name="orders publish", kind=3, attributes={
        "messaging__system": "rabbitmq", "messaging__operation": "publish", "messaging__destination": "orders",
    })),
    line("gateway", span(APP, 2, 1, name="receive orders", kind=5, attributes={
        "messaging__system": "hopline", "messaging__operation__type": "receive",
        "messaging__destination__name": "orders",
    })),
    line("billing", span(BROKER, 3, name="process orders", kind="SPAN_KIND_CONSUMER", status={"code": 2}, attributes={
        "messaging__system": "rabbitmq", "messaging__operation__name": "process", "net__peer__port": 5672,
    }, startTimeUnixNano=str(START - 1_000_000), endTimeUnixNano=str(START + 4_000_000),
    links=[{"traceId": APP, "spanId": f"{1:016x}"}, {"traceId": "c" * 32, "spanId": f"{9:016x}"}])),
]  # fmt: skip


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_otlp(spark: SparkSession, tmp_path: Path) -> None:
    """Spans of OTLP lines are rows, with names of today; what an old client calls publish is a send."""
    write(tmp_path, "date=2026-01-31/gateway-0001.jsonl", "\n".join(LINES))
    reading = read_spans(spark, [str(tmp_path)])
    rows = {row["span_id"]: row for row in reading.table.collect()}
    assert (len(rows), reading.lines, reading.bad_lines) == (3, 3, 0)
    publish, process = rows[f"{1:016x}"], rows[f"{3:016x}"]
    assert (publish["operation"], publish["destination"], publish["kind"]) == ("send", "orders", "client")
    assert (publish["trace_id"], publish["parent_id"], publish["duration_us"]) == (APP, "", 5000)
    assert (process["operation"], process["kind"], process["failed"]) == ("process", "consumer", True)
    assert process["attributes"]["server.port"] == "5672"
    assert [link["trace_id"] for link in process["links"]] == [APP, "c" * 32]


def test_links_are_followed(spark: SparkSession, tmp_path: Path) -> None:
    """A consumer that only links to its producer, in another trace, is its neighbour all the same."""
    write(tmp_path, "spans.jsonl", "\n".join(LINES))
    found = edges(read_spans(spark, [str(tmp_path)]).table).collect()
    assert {(row["from_service"], row["to_service"], row["via"]) for row in found} == {
        ("shop", "gateway", "parent"),
        ("shop", "billing", "link"),
    }


def test_job(spark: SparkSession, tmp_path: Path) -> None:
    """The analysis tells the graph of services, errors, and links whose end is not on record."""
    write(tmp_path / "spans", "spans.jsonl", "\n".join(LINES))
    sources = Sources(str(tmp_path / "ledger"), spans=(str(tmp_path / "spans"),))
    found = run(spark, job("traces"), sources, str(tmp_path / "out")).tables
    services = {(row["from_service"], row["to_service"]): row for row in found["services"]}
    assert services["shop", "billing"]["errors"] == 1
    assert services["shop", "gateway"]["p50_us"] == 5000
    assert {pair: row["early"] for pair, row in services.items()} == {("shop", "gateway"): 0, ("shop", "billing"): 1}
    assert [(row["service"], row["via"], row["spans"]) for row in found["orphans"]] == [("billing", "link", 1)]


def test_names(spark: SparkSession, tmp_path: Path) -> None:
    """Spans have their own names, in one row however runs call tags and queues; spans are counted, not lines."""
    tags = ("ctag1.0af7651916cd43dd8448eb211c80319c", "ctag1.b7ad6b71692033310af7651916cd43dd")
    messaging = {"messaging__system": "rabbitmq", "messaging__operation__type": "receive"}
    gets = [
        span(APP, number, name=f"{tag} receive", attributes={**messaging, "messaging__destination": f"amq.gen-{tag}"})
        for number, tag in enumerate(tags, 1)
    ]
    write(tmp_path / "spans", "spans.jsonl", line("shop", *gets, span(APP, 3, name="GET /orders")))
    sources = Sources(str(tmp_path / "ledger"), spans=(str(tmp_path / "spans"),))
    result = run(spark, job("traces"), sources, str(tmp_path / "out"))
    found = {(row["operation"], row["destination"], row["name"], row["spans"]) for row in result.tables["operations"]}
    assert found == {("receive", "amq.gen-*", "ctag-* receive", 2), ("", "", "GET /orders", 1)}
    read = result.summary["inputs"]["spans"]
    assert (read["rows"], read["lines"], read["bad_lines"]) == (3, 1, 0)


def test_jaeger(spark: SparkSession, tmp_path: Path) -> None:
    """Jaeger's document gives the same spans: parents, links of OpenTelemetry as references, errors as tags."""
    document = {
        "data": [
            {
                "traceID": "abc",
                "spans": [
                    {
                        "traceID": "abc",
                        "spanID": "2",
                        "operationName": "process orders",
                        "references": [
                            {"refType": "CHILD_OF", "traceID": "abc", "spanID": "1"},
                            {"refType": "FOLLOWS_FROM", "traceID": APP, "spanID": "9"},
                        ],
                        "startTime": START // 1000,
                        "duration": 1234,
                        "tags": [
                            {"key": "span.kind", "type": "string", "value": "consumer"},
                            {"key": "error", "type": "bool", "value": True},
                            {"key": "messaging.system", "type": "string", "value": "rabbitmq"},
                        ],
                        "logs": [{"timestamp": START // 1000, "fields": [{"key": "event", "value": "got it"}]}],
                        "processID": "p1",
                    }
                ],
                "processes": {"p1": {"serviceName": "billing", "tags": []}},
            }
        ]
    }
    write(tmp_path, "trace.json", json.dumps(document, indent=2))
    (row,) = read_spans(spark, [str(tmp_path)]).table.collect()
    assert (row["trace_id"], row["span_id"], row["parent_id"]) == (
        "abc".rjust(32, "0"),
        "2".rjust(16, "0"),
        "1".rjust(16, "0"),
    )
    assert (row["service"], row["kind"], row["operation"]) == ("billing", "consumer", "process")
    assert (row["failed"], row["duration_us"]) == (True, 1234)
    assert [(link["trace_id"], link["span_id"]) for link in row["links"]] == [(APP, "9".rjust(16, "0"))]
    assert [event["name"] for event in row["events"]] == ["got it"]


def test_bad_input(spark: SparkSession, tmp_path: Path) -> None:
    """Lines that are truncated, at either end, or of something else are counted; files of other formats are named; the
    rest is read, once."""
    write(tmp_path, "spans.jsonl", "\n".join([*LINES, LINES[0], '{"resourceMetrics": []}', LINES[1][:90], "", "null"]))
    write(tmp_path, "rotated.jsonl", f"{LINES[2][-90:]}\n{LINES[2]}")
    write(tmp_path, "packed.json", "\x00\x00\x01\x00(\xb5/\xfd")
    write(tmp_path, ".being-written.jsonl", LINES[0])
    write(tmp_path, "notes.txt", "no spans")
    reading = read_spans(spark, [str(tmp_path)])
    assert reading.table.count() == 3
    assert (reading.files, reading.lines, reading.bad_lines) == (2, 9, 4)
    assert [Path(refused.path).name for refused in reading.refused] == ["packed.json"]
    assert "format: json" in reading.refused[0].reason
