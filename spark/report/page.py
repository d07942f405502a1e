"""Makes the page of what analyses found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from spark.report.heading import heading
from spark.report.results import Found
from spark.report.sections import sections
from spark.report.svg import tone_class
from spark.report.words import moment

_ROWS = 50  # of each table
_TIME = re.compile(r"2\d{3}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d(\.\d{6})?(\+00:00)?", re.ASCII)


def page(results: Mapping[str, Found]) -> str:
    """One HTML file with everything in it: no script, no font, nothing to fetch."""
    # Clients choose the names of queues and applications: all are escaped.
    environment = Environment(
        loader=PackageLoader("spark", "report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"cell": _cell, "tone": tone_class}
    template = environment.get_template("report.html.j2")
    style = Markup(Path(__file__).with_name("report.css").read_text())  # noqa: S704 - this package's own
    return template.render(heading=heading(results), sections=sections(results), style=style, most=_ROWS)


def _cell(value: object) -> str:
    """Times come as text, and so do names, which may look like anything."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.4g}"
        case str() if _TIME.fullmatch(value):
            return moment(value)
        case _:
            return str(value)
