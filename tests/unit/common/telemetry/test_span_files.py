from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from services.common.telemetry.context import SpanContext
from services.common.telemetry.conventions import SCHEMA_URL, Kind
from services.common.telemetry.span import Event, Span, SpanLink
from services.common.telemetry.span_files import SpanFiles
from tests.support.small_disk import fill, small_disk

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Clock:
    now = NOON

    def __call__(self) -> datetime:
        return self.now


def files(folder: Path, clock: Clock, *, largest: int = 10_000, keep_bytes: int = 100_000) -> SpanFiles:
    resource = {"service.name": "hopline-gateway", "n": 1}
    return SpanFiles(
        folder, "gateway-1", resource, "0.1", largest=largest, keep_bytes=keep_bytes, keep_days=7, now=clock
    )


def span(**fields: object) -> Span:
    return Span("send q", Kind.PRODUCER, SpanContext(0xABC, 0xDEF), start_ns=1_700_000_000_000_000_000, **fields)


def test_otlp_json(tmp_path: Path) -> None:
    """A line is one TracesData: ids in hex, 64-bit integers as strings, enums as numbers, everything of a span."""
    writer = files(tmp_path, Clock())
    full = span(
        parent=SpanContext(0xABC, 1, remote=True),
        attributes={"text": "ü\n", "int": 1 << 62, "yes": True, "double": 1.5},
        links=[SpanLink(SpanContext(2, 3, "a=b", remote=True), {"uid": 7})],
        events=[Event("q enqueue", 5, {"outcome": "accepted"})],
        end_ns=1_700_000_000_000_000_001,
        failed=True,
    )
    writer.export([full, span(end_ns=2)])
    writer.close()
    [path] = tmp_path.glob("date=2026-11-21/gateway-1-0001.jsonl")
    [line] = path.read_bytes().splitlines()
    [of_resource] = json.loads(line)["resourceSpans"]
    assert of_resource["resource"]["attributes"][1] == {"key": "n", "value": {"intValue": "1"}}
    [of_scope] = of_resource["scopeSpans"]
    assert (of_scope["schemaUrl"], of_scope["scope"]["name"]) == (SCHEMA_URL, "hopline")
    written, bare = of_scope["spans"]
    assert written["traceId"] == "00000000000000000000000000000abc"
    assert (written["spanId"], written["parentSpanId"]) == ("0000000000000def", "0000000000000001")
    assert (written["kind"], written["flags"], written["status"]) == (4, 0x301, {"code": 2})
    assert written["startTimeUnixNano"] == "1700000000000000000"
    values = {each["key"]: each["value"] for each in written["attributes"]}
    assert values["text"] == {"stringValue": "ü\n"}
    assert values["int"] == {"intValue": str(1 << 62)}
    assert (values["yes"], values["double"]) == ({"boolValue": True}, {"doubleValue": 1.5})
    [link] = written["links"]
    assert (link["traceState"], link["flags"]) == ("a=b", 0x301)
    assert written["events"][0]["timeUnixNano"] == "5"
    assert not bare.keys() & {"parentSpanId", "events", "links", "status"}


def test_unpaired_surrogate(tmp_path: Path) -> None:
    """Text that no UTF-8 can say does not keep the other spans from being written."""
    writer = files(tmp_path, Clock())
    writer.export([span(attributes={"text": "\udcff"})])
    writer.close()
    [path] = tmp_path.glob("date=*/*.jsonl")
    assert json.loads(path.read_bytes())


def test_rotates(tmp_path: Path) -> None:
    """A file that would become too large is followed by another, and so is yesterday's."""
    clock = Clock()
    writer = files(tmp_path, clock, largest=1500)
    for _ in range(3):
        writer.export([span()])
    clock.now = NOON + timedelta(days=1)
    writer.export([span()])
    writer.close()
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("date=*/*.jsonl"))
    assert names == [
        "date=2026-11-21/gateway-1-0001.jsonl",
        "date=2026-11-21/gateway-1-0002.jsonl",
        "date=2026-11-22/gateway-1-0003.jsonl",
    ]


def test_keeps_days(tmp_path: Path) -> None:
    """Days that are too old are deleted, also those of other processes; other folders stay."""
    for name in ("date=2026-11-13", "date=2026-11-14", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "queue-1.jsonl").write_text("{}\n")
    writer = files(tmp_path, Clock())
    writer.export([span()])
    writer.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["date=2026-11-14", "date=2026-11-21", "other"]


def test_keeps_bytes(tmp_path: Path) -> None:
    """The oldest files go until the others fit; the one that is written to stays."""
    day = tmp_path / "date=2026-11-21"
    day.mkdir()
    for number in range(4):
        path = day / f"queue-{number}.jsonl"
        path.write_bytes(b"x" * 100)
        os.utime(path, (number + 1, number + 1))
    writer = files(tmp_path, Clock(), keep_bytes=250)
    writer.export([span()])
    writer.close()
    assert sorted(path.name for path in day.iterdir()) == ["gateway-1-0001.jsonl", "queue-2.jsonl", "queue-3.jsonl"]


def test_nowhere_to_write(tmp_path: Path) -> None:
    """A folder that cannot be written to is an error that says so, and the next attempt may work."""
    (tmp_path / "spans").write_text("a file")
    writer = files(tmp_path / "spans", Clock())
    with pytest.raises(OSError, match="spans"):
        writer.export([span()])
    (tmp_path / "spans").unlink()
    writer.export([span()])
    writer.close()


def test_spans_give_way_to_messages(tmp_path: Path) -> None:
    """Where the room left is for messages no span is written, and the count of losses names the reason."""
    low = [True]
    writer = SpanFiles(
        tmp_path, "a", {}, "0.1", largest=1000, keep_bytes=1000, keep_days=7, must_give_way=lambda: low[0]
    )
    with pytest.raises(OSError, match="give way"):
        writer.export([span()])
    assert list(tmp_path.iterdir()) == []
    low[0] = False
    writer.export([span()])
    writer.close()
    assert list(tmp_path.iterdir())


def test_a_full_disk(tmp_path: Path) -> None:
    """What does not fit is refused with the folder's name, and leaves no part of a line behind for what fits later."""
    with small_disk(tmp_path / "small", 1) as folder:
        writer = files(folder, Clock(), largest=1 << 20)
        writer.export([span(end_ns=1)])
        filled = fill(folder)
        long = span(end_ns=2, attributes={"text": "x" * 10_000})
        with pytest.raises(OSError, match=f"the disk is full: make room for {folder}"):
            writer.export([long])
        filled.unlink()
        writer.export([span(end_ns=3)])
        writer.close()
        [path] = folder.glob("*/*.jsonl")
        assert [json.loads(line)["resourceSpans"] != [] for line in path.read_bytes().splitlines()] == [True, True]
