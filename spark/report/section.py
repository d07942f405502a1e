"""What a part of the page is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from markupsafe import Markup

from spark.report.results import Row

MOST_BARS = 14  # in a plot


Legend = Sequence[tuple[int | str, str]]


class Plot(NamedTuple):
    """A picture, and where its colours mean something, what: tones with words."""

    caption: str
    picture: Markup
    legend: Legend = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page."""

    title: str
    says: Sequence[str]
    plots: Sequence[Plot] = ()
    commands: Sequence[str] = ()
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
