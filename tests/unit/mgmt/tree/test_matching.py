"""Regular expressions of callers, over names of queues."""

from __future__ import annotations

import asyncio
from time import perf_counter

import pytest

from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.tree import matching
from services.mgmt.tree.matching import Matching

NAMES = [f"{number:021}" for number in range(400)]
SLOW = "(?:.*?){6}[!?]"  # some ten milliseconds for each of these names


async def test_names() -> None:
    """Are those that it fits from the first character to the last."""
    assert await Matching().fitting("a.|b", ["a1", "a22", "b", "xb"], "p") == ["a1", "b"]


async def test_all_names_together_have_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes no long time for one name takes none for hundreds of them, and others have their turns meanwhile."""
    monkeypatch.setattr(matching, "PATIENCE", 0.3)
    began, turns = perf_counter(), 0
    asked = asyncio.ensure_future(Matching().fitting(SLOW, NAMES, "queueNamePattern"))
    while not asked.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert perf_counter() - began < 2
    assert turns > 3
    with pytest.raises(IllegalConfiguration, match="queueNamePattern: "):
        await asked


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "missing"),
        ("(" * 1000, "recursion"),
        ("a" * 1001, "longer than"),
        ("((((.*){50}){50}){50}){50}", "repeats"),
        ("(.{0,999999}){2}", "repeats"),
        ("a{" + "9" * 900 + "}", "repeats"),
    ],
)
async def test_what_is_not_even_begun(pattern: str, why: str) -> None:
    """What is no expression, or one that is large when it is made: before it is."""
    began = perf_counter()
    with pytest.raises(IllegalConfiguration, match=f"p: .*{why}"):
        await Matching().fitting(pattern, NAMES, "p")
    assert perf_counter() - began < 1
