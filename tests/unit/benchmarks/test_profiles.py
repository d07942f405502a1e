"""Profiles as py-spy writes them."""

from __future__ import annotations

from benchmarks.profiles import Stack, by_function, stacks


def test_by_function() -> None:
    """The innermost function of ours has what libraries do for it; a line that is none is passed over."""
    lines = [
        "main (/x/services/__main__.py:3);rows (/x/services/mgmt/rest/rows.py:9);dumps (/y/json/__init__.py:231) 3",
        "main (/x/services/__main__.py:3);rows (/x/services/mgmt/rest/rows.py:12) 2",
        "main (/x/services/__main__.py:3) 1",
        "run (/y/threading.py:982) 4",
        "nothing",
    ]
    seen = stacks(lines)
    assert seen[3] == Stack("run (/y/threading.py:982)", 4)
    expected = {"rows (services/mgmt/rest/rows.py)": 5, "main (services/__main__.py)": 1, "not ours": 4}
    assert by_function(seen) == expected
