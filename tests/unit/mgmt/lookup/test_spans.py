"""Spans of applications in a look-up, and links to Jaeger."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from services.common.trace import Trace
from services.mgmt.lookup import answers, span_search
from services.mgmt.lookup.jaeger import Jaeger
from services.mgmt.lookup.lookup import LookUp
from services.mgmt.lookup.otlp_line import spans_in
from services.mgmt.lookup.span_search import find_spans
from tests.support.ledger_files import NOON, LedgerFiles, uid

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
OTHER = "ffffffffffffffffffffffffffffffff"


def _span(number: int, trace: str = TRACE, **more: Any) -> dict[str, Any]:
    times = {"startTimeUnixNano": str((NOON + number) * 1000), "endTimeUnixNano": str((NOON + number + 5) * 1000)}
    return {"traceId": trace, "spanId": f"{number:016x}", "name": f"span {number}", "kind": 4, **times, **more}


def _line(*spans: dict[str, Any], service: str = "shop", scope: str = "pika", odd: Any = None) -> str:
    attributes = [{"key": "service.name", "value": {"stringValue": service}}, {"key": "odd", "value": odd}]
    of_scope = {"scope": {"name": scope}, "spans": list(spans)}
    return json.dumps({"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [of_scope]}]}) + "\n"


def _write(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))


def _never() -> bool:
    return False


async def test_in_the_same_answer(ledger: LedgerFiles, tmp_path: Path) -> None:
    """A message that was traced comes with its trace's spans, from every folder, by time; another's are not its own."""
    ledger.stage("received", uid(1))
    ledger.named("order-1", uid(1))
    ledger.named(TRACE, uid(1), kind="trace_id")
    ledger.stage("received", uid(2))
    ledger.named("order-2", uid(2))
    ledger.file()
    _write(tmp_path / "a/date=2026-08-21/x.jsonl", _line(_span(2), service="hopline-gateway", scope="hopline"))
    _write(tmp_path / "b/y.jsonl", _line(_span(1, parentSpanId=""), _span(9, OTHER)), _line(_span(8, OTHER)))
    look_up = LookUp(ledger.folder, spans=[tmp_path / "a", tmp_path / "b", tmp_path / "none"])
    [journey] = (await look_up.trace("order-1")).journeys
    assert [(span.name, span.service, span.broker) for span in journey.spans] == [
        ("span 1", "shop", False),
        ("span 2", "hopline-gateway", True),
    ]
    assert (journey.spans[0].start_us, journey.spans[0].end_us, journey.spans[0].kind) == (
        NOON + 1,
        NOON + 6,
        "producer",
    )
    [journey] = (await look_up.trace("order-2")).journeys
    assert journey.spans == []
    await look_up.stop()


def test_what_anybody_writes(tmp_path: Path) -> None:
    """What is no span, no line yet, or no JSON at all, is passed over; the others are told."""
    bad: list[dict[str, Any]] = [{"traceId": TRACE}, _span(1, startTimeUnixNano="soon"), _span(2, spanId=7)]
    odd = json.loads(_line(_span(6)))
    odd["resourceSpans"][0]["scopeSpans"][0]["scope"] = 7
    lines = [
        json.dumps(odd) + "\n",
        f"{TRACE} is no JSON\n",
        f'["{TRACE}"]\n',
        f'{{"resourceSpans": "{TRACE}"}}\n',
        _line(*bad, _span(3)),
    ]
    _write(tmp_path / "a.jsonl", *lines, _line(_span(4)).rstrip("\n"))
    (tmp_path / "empty.jsonl").touch()
    _write(tmp_path / "notes.txt", _line(_span(5)))
    found = find_spans([tmp_path], [TRACE], 0, _never)
    assert ([span.name for span in found.spans], found.cut_short) == (["span 3", "span 6"], False)


@pytest.mark.parametrize(
    "odd",
    [
        f'{{"id": "{TRACE}", "a": {"[" * 200_000}',
        f'{{"id": "{TRACE}", "a": {"[" * 200_000 + "]" * 200_000}}}',
        _line(_span(1), odd={"intValue": None}),
        _line(_span(1), odd={"intValue": "many"}),
        _line(_span(1), service="\ud800"),
        _line(_span(1, name="\udfff")),
        _line(_span(1, attributes=[{"key": "\ud800", "value": {"stringValue": "\ud800"}}])),
        _line(_span(1, attributes=[{"key": "k", "value": {"doubleValue": float("nan")}}])),
        _line(_span(1, attributes=[{"key": "k", "value": {"doubleValue": float("-inf")}}])),
        _line(_span(1, endTimeUnixNano=float("inf"))),
    ],
    ids=range(10),
)
async def test_an_odd_line_does_not_keep_a_message_s_way_back(ledger: LedgerFiles, tmp_path: Path, odd: str) -> None:
    """Whatever a program writes beside it, the way is told, with the spans that can be read, and as JSON."""
    ledger.stage("received", uid(1))
    ledger.named(TRACE, uid(1), kind="trace_id")
    ledger.file()
    _write(tmp_path / "a/a.jsonl", f"{odd}\n", _line(_span(2)))
    look_up = LookUp(ledger.folder, spans=[tmp_path / "a"])
    told = Trace.model_validate_json((await look_up.trace(TRACE)).model_dump_json())
    assert [span.span_id for span in told.journeys[0].spans][-1] == _span(2)["spanId"]
    await look_up.stop()


def test_values() -> None:
    """Attributes are told as what they are; what is neither text nor a number is told as JSON."""
    values = [
        {"stringValue": "a"},
        {"intValue": "7"},
        {"boolValue": True},
        {"doubleValue": 0.5},
        {"arrayValue": {}},
        None,
    ]
    attributes = [{"key": str(number), "value": value} for number, value in enumerate(values)]
    line = _line(_span(1, attributes=attributes, status={"code": 2}))
    [span] = spans_in(line.encode())
    assert list(span.attributes.values()) == ["a", 7, True, 0.5, "{}", ""]
    assert span.failed


def test_old_files_and_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were written before the message came are not read; after so many spans, or so long, it is enough."""
    for number in range(3):
        _write(tmp_path / f"{number}.jsonl", _line(_span(number)))
        os.utime(tmp_path / f"{number}.jsonl", (NOON // 1_000_000 + number,) * 2)
    since = [find_spans([tmp_path], [TRACE], NOON + 1_000_000 * number, _never) for number in range(4)]
    assert [len(found.spans) for found in since] == [3, 2, 1, 0]
    assert find_spans([tmp_path], [TRACE], 0, lambda: True) == ([], True)
    monkeypatch.setattr(span_search, "MOST_SPANS", 1)
    found = find_spans([tmp_path], [TRACE], 0, _never)
    assert ([span.name for span in found.spans], found.cut_short) == (["span 2"], True)
    _write(tmp_path / "b/several.jsonl", _line(_span(1), _span(2)))
    found = find_spans([tmp_path / "b"], [TRACE], 0, _never)
    assert ([span.name for span in found.spans], found.cut_short) == (["span 1"], True)


async def test_it_takes_too_long(ledger: LedgerFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where spans cannot be found in time, the answer says so, and has the message's way."""
    monkeypatch.setattr(answers, "_SPANS_SECONDS", 0)
    ledger.stage("received", uid(1))
    ledger.named(TRACE, uid(1), kind="trace_id")
    ledger.file()
    _write(tmp_path / "a/a.jsonl", _line(_span(1)))
    look_up = LookUp(ledger.folder, spans=[tmp_path / "a"])
    trace = await look_up.trace(TRACE)
    assert (len(trace.journeys), trace.journeys[0].spans, trace.spans_cut_short) == (1, [], True)
    await look_up.stop()


async def test_links_while_jaeger_is_there() -> None:
    """A link for each trace as long as Jaeger listens; asked again after a while, and not before."""
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    now = 0.0
    jaeger = Jaeger("https://jaeger.example/ui/", f"127.0.0.1:{port}", lambda: now)
    assert await jaeger.links([TRACE]) == [f"https://jaeger.example/ui/trace/{TRACE}"]
    server.close()
    await server.wait_closed()
    assert len(await jaeger.links([TRACE])) == 1
    now = 11.0
    assert await jaeger.links([TRACE]) == []


async def test_a_link_opens_the_trace_of_the_message(ledger: LedgerFiles) -> None:
    """Whatever a message is asked for by, its link opens the page of its own trace; one without a trace has none."""
    for number in (1, 2):
        ledger.stage("received", uid(number))
        ledger.named(f"order-{number}", uid(number))
    ledger.named(TRACE, uid(1), kind="trace_id")
    ledger.file()
    opened: list[str] = []

    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """As Jaeger's, whose pages of traces are below /trace/."""
        if request := await reader.readline():
            opened.append(request.split()[1].decode())
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(page, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    look_up = LookUp(ledger.folder, jaeger=Jaeger(url))
    for asked in ("order-1", str(uid(1)), TRACE):
        [journey] = (await look_up.trace(asked)).journeys
        [link] = journey.jaeger
        await asyncio.to_thread(urlopen, link)
    assert opened == [f"/trace/{TRACE}"] * 3
    [journey] = (await look_up.trace("order-2")).journeys
    assert journey.jaeger == []
    await look_up.stop()
    server.close()


async def test_no_links() -> None:
    """Where Jaeger is not configured, and for a message that was not traced, there are none."""
    assert await Jaeger("").links([TRACE]) == []
    assert await Jaeger("http://127.0.0.1:1").links([]) == []
