"""Spans of applications as a tree, on the scale of the message that they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.text import Text

from services.cli.durations import duration
from services.cli.scale import Scale
from services.common.trace import Span

_DEEPEST = 8  # levels that are indented


def of_applications(spans: Iterable[Span]) -> list[Span]:
    """Those that are no stages of the broker's."""
    return [span for span in spans if not span.broker]


def span_lines(spans: list[Span], scale: Scale) -> Iterator[Text]:
    """One for each: when, how long, and below which other one; `spans` are all, also the broker's in between."""
    parents = {span.span_id: span.parent_id for span in spans}
    shown = of_applications(spans)
    known = {span.span_id for span in shown}
    depths = {span.span_id: _depth(span.span_id, parents, known) for span in shown}
    name = max((len(span.name) + 2 * depths[span.span_id] for span in shown), default=0)
    for span in shown:
        indent = "  " * depths[span.span_id]
        yield Text.assemble(
            (f"{duration(span.start_us - scale.begin):>10}", "dim"),
            f"{duration(span.end_us - span.start_us):>10}  ",
            (scale.bar(span.start_us, span.end_us), "magenta"),
            (f"  {indent}{span.name:<{name - len(indent)}}", "red" if span.failed else ""),
            (f"  {span.service}", "dim"),
            ("  failed" if span.failed else "", "red"),
        )


def _depth(span_id: str, parents: Mapping[str, str | None], known: set[str]) -> int:
    """How many of the shown spans are above it. Any application may have written them: there may be circles."""
    depth, seen = 0, {span_id}
    above = parents.get(span_id)
    while above is not None and above in parents and above not in seen and depth < _DEEPEST:
        seen.add(above)
        depth += above in known
        above = parents[above]
    return depth
