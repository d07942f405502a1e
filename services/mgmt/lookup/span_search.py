"""Spans of some traces, out of files of OTLP JSON lines: the broker's own, those of applications, of a collector."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from services.common.trace import Span
from services.mgmt.lookup.otlp_line import spans_in

MOST_SPANS = 1000  # of one answer
_LONGEST_LINE = 16 << 20  # bytes


class FoundSpans(NamedTuple):
    """By their start."""

    spans: list[Span]
    cut_short: bool


def find_spans(
    folders: Sequence[Path], trace_ids: Collection[str], since_us: int, expired: Callable[[], bool]
) -> FoundSpans:
    """Those of files that were written since; stops early when `expired` says so, or there are too many."""
    found: dict[tuple[str, str], Span] = {}
    cut_short = False
    for path in _newest(folders, since_us) if trace_ids else ():
        cut_short = expired() or len(found) >= MOST_SPANS
        if cut_short:
            break
        found.update({(span.trace_id, span.span_id): span for span in _in_file(path, trace_ids)})
    spans = sorted(found.values(), key=lambda span: (span.start_us, span.span_id))
    return FoundSpans(spans[:MOST_SPANS], cut_short or len(spans) > MOST_SPANS)


def _newest(folders: Sequence[Path], since_us: int) -> list[str]:
    paths = {path for folder in folders for path in _files(folder)}
    written = {path: time_us for path in paths if (time_us := _written_us(path)) >= since_us}
    return sorted(written, key=lambda path: written[path], reverse=True)


def _files(folder: Path) -> Iterator[str]:
    for below, _, names in os.walk(folder):
        yield from (os.path.realpath(f"{below}/{name}") for name in names if name.endswith((".jsonl", ".json")))


def _written_us(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns // 1000
    except OSError:  # deleted meanwhile
        return -1


def _in_file(path: str, trace_ids: Collection[str]) -> Iterator[Span]:
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:  # noqa: PTH123
            lines = dict.fromkeys(bounds for trace_id in trace_ids for bounds in _lines(data, trace_id.encode()))
            for begin, end in lines:
                yield from (span for span in spans_in(data[begin:end]) if span.trace_id in trace_ids)
    except (OSError, ValueError):  # gone, not ours to read, or empty
        return


def _lines(data: mmap.mmap, trace_id: bytes) -> Iterator[tuple[int, int]]:
    """Where lines are that have it."""
    at = data.find(trace_id)
    while at >= 0:
        begin, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        if end < 0:
            return  # it is being written
        if end - begin <= _LONGEST_LINE:
            yield begin, end
        at = data.find(trace_id, end)
