"""The share of a profile that is checks of access."""

from __future__ import annotations

from benchmarks.checks import Share, share
from benchmarks.profiles import stacks


def test_what_counts() -> None:
    """All that is below the check, and the check itself; not what carries the message."""
    publish = "/hopline/services/gateway/operations/publish.py"
    asked = f"MainThread;carry_out (/x/operations/__init__.py:7);publish ({publish}:36);_fault ({publish}:55)"
    lines = [
        f"{asked} 2",
        f"{asked};_refusal ({publish}:66);refusal_to_publish (/x/services/gateway/sessions/permitted.py:9) 3",
        f"MainThread;publish ({publish}:36);_route ({publish}:90) 90",
        "MainThread;declare_queue (/x/services/gateway/operations/needs.py:90) 5",
        "no line of a profile",
    ]
    assert share(stacks(lines)) == Share(10, 100)
    assert share(stacks(lines)).percent == 10
    assert share([]).percent == 0
