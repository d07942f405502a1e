from __future__ import annotations

import io

import pytest
from rich.console import Console

from spark.shown import show


@pytest.mark.parametrize("count", [1, 2])
def test_hostile_names(count: int) -> None:
    """A queue's name that holds markup or an escape sequence is shown as it is, and not obeyed."""
    written = io.StringIO()
    show("audit", [{"queue": "[/x]\x1b[2J"}] * count, Console(file=written))
    assert written.getvalue().count(r"[/x]\x1b[2J") == count
    assert "\x1b" not in written.getvalue()
