"""What a part of the page is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from spark.report.results import Row

MOST_BARS = 14  # in a plot


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page."""

    title: str
    says: Sequence[str]
    plots: Sequence[tuple[str, Markup]] = ()  # caption and picture
    commands: Sequence[str] = ()
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
