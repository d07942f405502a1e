"""Plots as inline SVG: colours are classes of the page's style sheet, and values show when the pointer is on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from spark.report.words import count

WIDTH = 880
NARROW = 334  # of a telephone of 390
TONES = 6  # colours of series

_ROW, _LABEL = 24, 230
_NARROW_ROW = 42
_LETTER = 6.8  # of 12 pixels, on average; a line of wide ones is cut before it leaves its card
_DIGIT = 7.7  # in the widest of usual fonts: names of processes are digits
_COLUMNS_HEIGHT, _LINES_HEIGHT = 180, 220
_AXIS = 56


class Bar(NamedTuple):
    """A bar, of one part or several: each a size, a tone and what it says under the pointer."""

    label: str
    parts: Sequence[tuple[float, int | str, str]]
    text: str = ""


def bars(rows: Sequence[Bar]) -> Markup:
    """Bars to the right, one below the other: once for a desk, and once for a telephone."""
    return _beside(rows) + _below(rows)


def _beside(rows: Sequence[Bar]) -> Markup:
    labels = min(max((len(row.label) for row in rows), default=0) * _DIGIT + 16, _LABEL)
    values = max((len(row.text) for row in rows), default=0) * _LETTER + 12
    scale = (WIDTH - labels - values) / _longest(rows)
    drawn = []
    for number, row in enumerate(rows):
        top, line = number * _ROW, number * _ROW + _ROW / 2 + 4
        drawn.append(text(labels - 8, line, short(row.label, (labels - 12) * _LETTER / _DIGIT), "end", title=row.label))
        drawn.append(_parts(row, labels, top + 4, scale))
        drawn.append(text(labels + _size(row) * scale + 6, line, row.text, "start", "number"))
    return drawing(len(rows) * _ROW, drawn, kind="wide")


def _below(rows: Sequence[Bar]) -> Markup:
    """Each bar below its label and its value, which stand at the two ends of a line."""
    scale = NARROW / _longest(rows)
    drawn = []
    for number, row in enumerate(rows):
        top = number * _NARROW_ROW
        room = NARROW - len(row.text) * _LETTER - 12
        drawn.append(text(0, top + 14, short(row.label, room), "start", title=row.label))
        drawn.append(text(NARROW, top + 14, row.text, "end", "number"))
        drawn.append(_parts(row, 0, top + 19, scale))
    return drawing(len(rows) * _NARROW_ROW, drawn, NARROW, "narrow")


def _longest(rows: Sequence[Bar]) -> float:
    return max(map(_size, rows), default=0) or 1


def _size(row: Bar) -> float:
    return sum(size for size, _, _ in row.parts)


def _parts(row: Bar, left: float, top: float, scale: float) -> str:
    drawn = []
    for size, tone, title in row.parts:
        width = size * scale
        drawn.append(rectangle(left, top, max(width - 1, 1.0), _ROW - 8, tone, title))
        left += width
    return "".join(drawn)


def columns(values: Sequence[tuple[str, float, int, str]], unit: str) -> Markup:
    """Columns side by side: label, height, tone, title of each; a scale at the left."""
    highest = max((height for _, height, _, _ in values), default=0) or 1
    width = (WIDTH - _AXIS) / max(len(values), 1)
    every = max(1, round(40 / width))
    drawn = [_scale(highest, _COLUMNS_HEIGHT, unit)]
    for number, (label, height, tone, title) in enumerate(values):
        tall = height / highest * (_COLUMNS_HEIGHT - 10)
        left = _AXIS + number * width
        drawn.append(rectangle(left + 1, _COLUMNS_HEIGHT - tall, min(width - 2, 48), max(tall, 1), tone, title))
        if number % every == 0:
            drawn.append(text(left + min(width, 50) / 2, _COLUMNS_HEIGHT + 16, label, "middle", "axis"))
    return drawing(_COLUMNS_HEIGHT + 22, drawn)


def lines(series: Mapping[str, Sequence[tuple[datetime, float]]], unit: str) -> Markup:
    """Values over time, a line for each name; names stand at the right ends."""
    points = [point for line in series.values() for point in line]
    if not points:
        return Markup("")
    begin, end = min(time for time, _ in points), max(time for time, _ in points)
    seconds = (end - begin).total_seconds() or 1.0
    highest = max(value for _, value in points) or 1
    right = WIDTH - 170

    def at(time: datetime, value: float) -> tuple[float, float]:
        across = (time - begin).total_seconds() / seconds
        return _AXIS + across * (right - _AXIS), _LINES_HEIGHT - value / highest * (_LINES_HEIGHT - 10)

    drawn = [_scale(highest, _LINES_HEIGHT, unit, right)]
    ends = []
    for number, (name, line) in enumerate(series.items()):
        places = [at(*point) for point in line]
        path = " ".join(f"{across:.1f},{down:.1f}" for across, down in places)
        drawn.append(
            f'<polyline class="line t{number % TONES}" points="{path}"><title>{escape(name)}</title></polyline>'
        )
        if len(places) == 1:  # of one point there is no line
            drawn.append(_dot(*places[0], number, name))
        ends.append((places[-1][1], number, name))
    drawn += _names_at_ends(ends, right)
    drawn.append(text(_AXIS, _LINES_HEIGHT + 16, f"{begin:%Y-%m-%d %H:%M:%S}", "start", "axis"))
    drawn.append(text(right, _LINES_HEIGHT + 16, f"{end:%Y-%m-%d %H:%M:%S}", "end", "axis"))
    return drawing(_LINES_HEIGHT + 22, drawn)


def _dot(left: float, top: float, number: int, name: str) -> str:
    where = f'cx="{left:.1f}" cy="{top:.1f}" r="3"'
    return f'<circle class="t{number % TONES}" {where}><title>{escape(name)}</title></circle>'


def _names_at_ends(ends: Iterable[tuple[float, int, str]], right: float) -> list[str]:
    """Names beside their lines, moved apart where they would cover each other."""
    ordered = sorted(ends)
    drawn, free = [], 0.0
    for place, (down, number, name) in enumerate(ordered):
        # Those that follow have their places above the axis, too.
        free = max(free + 15, min(down + 4, _LINES_HEIGHT - 15 * (len(ordered) - 1 - place)))
        drawn.append(
            text(right + 8, free, short(name, WIDTH - right - 12), "start", f"name t{number % TONES}", title=name)
        )
    return drawn


def _scale(highest: float, height: float, unit: str, right: float = WIDTH) -> str:
    drawn = []
    for part in (0.0, 0.5, 1.0):
        down = height - part * (height - 10)
        drawn.append(f'<line class="grid" x1="{_AXIS}" x2="{right}" y1="{down:.1f}" y2="{down:.1f}"/>')
        drawn.append(text(_AXIS - 6, down + 4, count(highest * part) + unit, "end", "axis"))
    return "".join(drawn)


def rectangle(left: float, top: float, width: float, height: float, tone: int | str, title: str) -> str:
    """A rectangle with rounded corners that says `title` under the pointer."""
    shape = f'x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"'
    return f'<rect class="{tone_class(tone)}" {shape}><title>{escape(title)}</title></rect>'


def text(left: float, top: float, words: str, anchor: str, kind: str = "", *, title: str = "") -> str:
    """Some words; `title` is what they say under the pointer."""
    more = f"<title>{escape(title)}</title>" if title else ""
    where = f'x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {where}>{escape(words)}{more}</text>'


def drawing(height: float, parts: Iterable[str], width: float = WIDTH, kind: str = "") -> Markup:
    """An SVG as wide as the page; of kind `wide` or `narrow` where there is another one for other screens."""
    # Everything in `parts` is made here, and its words are escaped.
    shown = f'viewBox="0 0 {width:.0f} {height:.0f}" role="img"'
    return Markup(f'<svg class="{kind}" {shown}>{"".join(parts)}</svg>')  # noqa: S704


def tone_class(tone: int | str) -> str:
    """The class of the style sheet that has its colour."""
    return tone if isinstance(tone, str) else f"t{tone % TONES}"


def short(words: str, width: float) -> str:
    """As much as there is room for: names differ at their ends as often as at their beginnings, so both stay."""
    longest = int(width / _LETTER)
    if len(words) <= longest:
        return words
    end = longest // 2
    return f"{words[: longest - 1 - end]}…{words[-end:]}"
