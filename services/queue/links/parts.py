"""Settlements of more than goes in one turn of the event loop, in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from services.queue.machine import turn
from services.rpc.queue_pb2 import Settle

_ANNOTATED: Final = 250
"""One with annotations is read and written anew: it takes the time of so many others, or, of few headers, less."""


class Span(NamedTuple):
    """Of one settlement, the uids `first` to `end - 1`; all of it without `alike`, which is to be copied for others."""

    settle: Settle
    first: int
    end: int
    alike: Settle | None = None


def size_of(settles: Sequence[Settle]) -> int:
    """How many are settled now: a transaction's are kept for its commit."""
    return sum(_work(settle) for settle in settles if not settle.transaction) if settles else 0


def _work(settle: Settle) -> int:
    return len(settle.uids) * _each(settle)


def _each(settle: Settle) -> int:
    return _ANNOTATED if settle.annotations else 1


def _without_uids(settle: Settle) -> Settle:
    """To be copied for each part, as often as there are parts."""
    alike = Settle()
    alike.CopyFrom(settle)
    del alike.uids[:]
    return alike


def spans_of(settles: Sequence[Settle]) -> Iterator[list[Span]]:
    """As many of them as go in one turn, in order, for `cut`: one list at least, perhaps an empty one."""
    spans, room = list[Span](), turn.AT_ONCE
    for settle in settles:
        at, count, each = 0, len(settle.uids), _each(settle)
        if settle.transaction:
            spans.append(Span(settle, 0, 0))
            continue
        alike = _without_uids(settle) if count * each > room else None
        while at < count:
            if room < each:
                yield spans
                spans, room = [], turn.AT_ONCE
            end = min(at + max(room // each, 1), count)
            spans.append(Span(settle, at, end, alike))
            at, room = end, room - (end - at) * each
    yield spans


def work_of(spans: Iterable[Span]) -> int:
    """How many are settled now, those with annotations as so many others."""
    return sum((span.end - span.first) * _each(span.settle) for span in spans)


def cut(spans: Iterable[Span]) -> list[Settle]:
    """These, each as a settlement by itself."""
    return [_some(span) for span in spans]


def _some(span: Span) -> Settle:
    if span.alike is None:
        return span.settle
    some = Settle()
    some.CopyFrom(span.alike)
    some.uids.extend(span.settle.uids[span.first : span.end])
    return some
