"""Traces from files of OTLP JSON lines, as trees: `python -m examples.tracing.show FOLDER…`."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

_Span = dict[str, Any]


def read(folders: Iterable[Path]) -> Iterator[_Span]:
    """Every span, with the name of its service."""
    for folder in folders:
        for path in sorted(folder.rglob("*.jsonl")):
            for line in path.read_text().splitlines():
                yield from _spans(json.loads(line))


def _spans(data: dict[str, Any]) -> Iterator[_Span]:
    for of_resource in data["resourceSpans"]:
        resource = {each["key"]: each["value"].get("stringValue", "") for each in of_resource["resource"]["attributes"]}
        for of_scope in of_resource["scopeSpans"]:
            for span in of_scope["spans"]:
                yield {**span, "service": resource["service.name"]}


def show(spans: Iterable[_Span], console: Console) -> None:
    """One tree for each trace that has more than one span, by time."""
    traces: dict[str, list[_Span]] = defaultdict(list)
    for span in spans:
        traces[span["traceId"]].append(span)
    for trace in sorted(traces.values(), key=lambda found: min(map(_start, found))):
        if len(trace) > 1:
            table = Table(box=None, pad_edge=False, show_header=False)
            for row in _rows(sorted(trace, key=_start)):
                table.add_row(*row)
            console.print(table)
            console.print()


def _rows(trace: list[_Span]) -> Iterator[tuple[str, str, str, str]]:
    known = {span["spanId"] for span in trace}
    children: dict[str, list[_Span]] = defaultdict(list)
    for span in trace:
        parent = span.get("parentSpanId", "")
        children[parent if parent in known else ""].append(span)
    yield from _below("", "", children)


def _below(parent: str, indent: str, children: dict[str, list[_Span]]) -> Iterator[tuple[str, str, str, str]]:
    for span in children[parent]:
        last = span is children[parent][-1]
        branch = ("└─ " if last else "├─ ") if parent else ""
        milliseconds = (int(span["endTimeUnixNano"]) - _start(span)) / 1e6
        said = ", ".join([event["name"] for event in span.get("events", ())] + _outcome(span))
        yield f"{indent}{branch}{span['name']}", span["service"], f"{milliseconds:.1f} ms", said
        deeper = ("   " if last else "│  ") if parent else ""
        yield from _below(span["spanId"], indent + deeper, children)


def _outcome(span: _Span) -> list[str]:
    wanted = {"hopline.outcome", "hopline.reason"}
    return [each["value"].get("stringValue", "") for each in span.get("attributes", ()) if each["key"] in wanted]


def _start(span: _Span) -> int:
    return int(span["startTimeUnixNano"])


def main() -> None:
    """Of the folders that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    show(read(parser.parse_args().folders), Console())


if __name__ == "__main__":
    main()
