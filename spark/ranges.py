"""Interval arithmetic on ranges of message uids: what is known of messages, without looking at each of them.

Rows say something of all messages of a range. Ranges of different rows overlap as they please: messages are received a
thousand at a time, and acknowledged one by one. `cut` gives segments, ranges that no row divides, and for each what all
rows that cover it say together. Rows are of copies (of messages, in a queue), or of messages wherever they are; the
latter are told of every copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Columns = Mapping[str, Ints]

# In the column of a `min` or `max` where no row has anything to say.
NOTHING = np.iinfo(np.int64).min

_KINDS = 64  # numbers of kinds are below
_MOST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Measure:
    """What to know of a segment, from the rows that cover it and whose `kind` is among `kinds`."""

    name: str
    kinds: tuple[int, ...]
    how: Literal["count", "min", "max"] = "count"  # how many rows, or the smallest or greatest value
    of: str = ""  # the column of values


class _Spans(NamedTuple):
    """Rows as [begin, finish), in ranks of points; `base` keeps groups apart."""

    begin: Ints
    finish: Ints
    base: Ints


class _Segments(NamedTuple):
    begin: Ints
    finish: Ints
    base: Ints
    piece_row: Ints  # piece i is of this row,
    piece_segment: Ints  # and in this segment


def cut(rows: Columns, of_copies: Sequence[Measure], of_messages: Sequence[Measure]) -> dict[str, Ints]:
    """Segments in columns `place`, `copy`, `first`, `last` and one for each measure.

    `rows` has columns `place`, `copy` (0 or 1), `kind`, `first`, `last` (inclusive) and those that measures are of.
    Copies are told apart by place, messages are not. Segments of messages that no copy covers are told too, with
    nothing (0 in counts) in measures of copies.
    """
    points = _distinct(rows["first"], rows["last"] + 1)
    stride = len(points) + 1
    order = np.argsort(rows["first"])  # what is looked up in order is found much faster
    is_copy = rows["copy"][order] == 1
    copies, messages = order[is_copy], order[~is_copy]
    places = _distinct(rows["place"][copies])
    of_copy = _spans(rows, copies, points, np.searchsorted(places, rows["place"][copies]) * stride)
    of_message = _spans(rows, messages, points, np.zeros(len(messages), np.int64))

    boundaries = _distinct(of_message.begin, of_message.finish)
    copy_segments = _segments(of_copy, boundaries, stride)
    covered = _covered(of_copy, stride)
    message_segments = _segments(of_message, np.flatnonzero(np.diff(covered, prepend=False)), stride)

    said_of_copies = _measure(rows, copies, copy_segments, of_copies)
    said_of_messages = _measure(rows, messages, message_segments, of_messages)
    apart = np.flatnonzero(~covered[message_segments.begin])
    where = _overlay(copy_segments, message_segments)
    begins = np.concatenate([copy_segments.begin, message_segments.begin[apart]])
    finishes = np.concatenate([copy_segments.finish, message_segments.finish[apart]])
    where_apart = np.full(len(message_segments.begin), NOTHING)
    np.maximum.at(where_apart, message_segments.piece_segment, rows["place"][messages[message_segments.piece_row]])
    result = {
        "place": np.concatenate([places[copy_segments.base // stride], where_apart[apart]]),
        "copy": np.concatenate([np.ones_like(copy_segments.begin), np.zeros_like(apart)]),
        "first": points[begins],
        "last": points[finishes] - 1,
    }
    for measure in of_copies:
        absent = np.full(len(apart), _absent(measure))
        result[measure.name] = np.concatenate([said_of_copies[measure.name], absent])
    for measure in of_messages:
        said = np.append(said_of_messages[measure.name], _absent(measure))  # the last is for `where` -1
        result[measure.name] = np.concatenate([said[where], said[apart]])
    return result


def _spans(rows: Columns, which: Ints, points: Ints, base: Ints) -> _Spans:
    begin = np.searchsorted(points, rows["first"][which])
    return _Spans(begin, np.searchsorted(points, rows["last"][which] + 1), base)


def _distinct(*values: Ints) -> Ints:
    """All values, ascending, each once; by sorting, which for whole numbers is several times as fast as np.unique."""
    everything = np.sort(np.concatenate(values))
    return everything[np.append(True, everything[1:] != everything[:-1])] if len(everything) else everything


def clip(rows: Columns, ranges: Columns) -> dict[str, Ints]:
    """The parts of rows that are in ranges of the same place, which must not overlap: each with all the row says.

    `rows` and `ranges` have `place`, `first` and `last`.
    """
    whole = joined(ranges)
    points = _distinct(rows["first"], rows["last"] + 1, whole["first"], whole["last"] + 1)
    places = _distinct(whole["place"])
    known = np.flatnonzero(np.isin(rows["place"], places))
    stride = len(points) + 1

    def spans(columns: Columns, which: Ints) -> _Spans:
        return _spans(columns, which, points, np.searchsorted(places, columns["place"][which]) * stride)

    of_rows, of_ranges = spans(rows, known), spans(whole, np.arange(len(whole["first"])))
    low = np.searchsorted(of_ranges.base + of_ranges.finish, of_rows.base + of_rows.begin, "right")
    high = np.searchsorted(of_ranges.base + of_ranges.begin, of_rows.base + of_rows.finish, "left")
    row, which = expand(low, np.maximum(high - low, 0))
    kept = {name: values[known[row]] for name, values in rows.items()}
    kept["first"] = np.maximum(kept["first"], whole["first"][which])
    kept["last"] = np.minimum(kept["last"], whole["last"][which])
    return kept


def joined(ranges: Columns) -> dict[str, Ints]:
    """Ranges that do not overlap, in order, those put together that follow one another in the same place."""
    order = np.lexsort((ranges["first"], ranges["place"]))
    place, first, last = (ranges[name][order] for name in ("place", "first", "last"))
    begins = np.append(True, (place[1:] != place[:-1]) | (first[1:] > last[:-1] + 1))[: len(order)]
    ends = np.append(begins[1:], True)[: len(order)]
    return {"place": place[begins], "first": first[begins], "last": last[ends]}


def union(ranges: Columns) -> dict[str, Ints]:
    """What any of the ranges covers, wherever it is: ranges that do not overlap, in place 0."""
    order = np.argsort(ranges["first"])
    first, last = ranges["first"][order], np.maximum.accumulate(ranges["last"][order])
    begins = np.append(True, first[1:] > last[:-1] + 1)[: len(order)]
    ends = np.append(begins[1:], True)[: len(order)]
    return {"place": np.zeros(int(begins.sum()), np.int64), "first": first[begins], "last": last[ends]}


def _segments(spans: _Spans, boundaries: Ints, stride: int) -> _Segments:
    """Cuts spans where any of their group begins or ends, and at boundaries inside them."""
    begin, finish = spans.base + spans.begin, spans.base + spans.finish
    keys = _distinct(begin, finish, _inside(spans, boundaries))
    low, high = np.searchsorted(keys, begin), np.searchsorted(keys, finish)
    row, key = expand(low, high - low)
    used, segment = _dense(key, len(keys))
    return _Segments(keys[used] % stride, keys[used + 1] % stride, keys[used] // stride * stride, row, segment)


def _inside(spans: _Spans, boundaries: Ints) -> Ints:
    low = np.searchsorted(boundaries, spans.begin, "right")
    high = np.searchsorted(boundaries, spans.finish, "left")
    row, which = expand(low, np.maximum(high - low, 0))
    return spans.base[row] + boundaries[which]


def expand(start: Ints, count: Ints) -> tuple[Ints, Ints]:
    """For each i the numbers start[i], start[i] + 1, … (count[i] of them), and beside each its i."""
    row = np.repeat(np.arange(len(start)), count)
    before = np.cumsum(count) - count
    return row, np.arange(len(row)) + (start - before)[row]


def _dense(numbers: Ints, limit: int) -> tuple[Ints, Ints]:
    """The numbers there are, ascending, and the place of each among them."""
    there = np.zeros(limit, np.bool_)
    there[numbers] = True
    place = np.cumsum(there) - 1
    return np.flatnonzero(there), place[numbers]


def _covered(spans: _Spans, points: int) -> Bools:
    """For each point whether a span covers what follows it."""
    opened = np.bincount(spans.begin, minlength=points) - np.bincount(spans.finish, minlength=points)
    covered: Bools = np.cumsum(opened) > 0
    return covered


def _overlay(copies: _Segments, messages: _Segments) -> Ints:
    """For each segment of copies the place of the segment of messages that covers it, or -1."""
    if not len(messages.begin):
        return np.full(len(copies.begin), -1)
    place = np.searchsorted(messages.begin, copies.begin, "right") - 1
    covers: Bools = (place >= 0) & (messages.finish[place] > copies.begin)
    return np.where(covers, place, -1)


def _absent(measure: Measure) -> int:
    return 0 if measure.how == "count" else NOTHING


def _measure(rows: Columns, which: Ints, segments: _Segments, measures: Sequence[Measure]) -> dict[str, Ints]:
    kind = rows["kind"][which][segments.piece_row]
    size = len(segments.begin)
    return {
        measure.name: _said(measure, rows, which[segments.piece_row], kind, segments.piece_segment, size)
        for measure in measures
    }


def _is_among(kinds: tuple[int, ...]) -> Bools:
    among = np.zeros(_KINDS, np.bool_)
    among[list(kinds)] = True
    return among


def _said(measure: Measure, rows: Columns, row: Ints, kind: Ints, segment: Ints, size: int) -> Ints:
    pieces = np.flatnonzero(_is_among(measure.kinds)[kind])
    if measure.how == "count":
        return np.bincount(segment[pieces], minlength=size)
    values = rows[measure.of][row[pieces]]
    if measure.how == "max":
        greatest = np.full(size, NOTHING)
        np.maximum.at(greatest, segment[pieces], values)
        return greatest
    smallest = np.full(size, _MOST)
    np.minimum.at(smallest, segment[pieces], values)
    return np.where(smallest == _MOST, NOTHING, smallest)
