from __future__ import annotations

from pathlib import Path

from suites.differences import listed
from suites.table import SUITES

ROOT = Path(__file__).parents[3]


def test_every_listed_difference_is_told_to_users() -> None:
    """Each names the row of docs/differences.md that tells of it by its first cell, and a suite that there is."""
    rows = (ROOT / "docs/differences.md").read_text().splitlines()
    cells = {row.split("|")[1].strip() for row in rows if row.startswith("|")}
    assert {difference.told for difference in listed()} <= cells
    assert {difference.suite for difference in listed()} <= {suite.name for suite in SUITES}
