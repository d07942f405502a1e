"""Regular expressions of callers, over names of queues."""

from __future__ import annotations

import asyncio
from time import process_time

import pytest

from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.tree import matching
from services.mgmt.tree.matching import fitting

NAMES = [f"{number:021}" for number in range(400)]
SLOW = "(?:.*?){6}[!?]"  # some ten milliseconds for each of these names


async def test_names() -> None:
    """Are those that it fits from the first character to the last."""
    assert await fitting("a.|b", ["a1", "a22", "b", "xb"], "p") == ["a1", "b"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (r"\(?x\)?", ["x", "(x)"]),
        (r"x-\{id}", ["x-{id}"]),
        (r"(?i)X(?:-\{.{2}\})?", ["x", "x-{id}"]),
        ("(?P<x>x)", ["x"]),
        (r"\p{L}{1,9}", ["x"]),
    ],
)
async def test_what_only_looks_like_what_is_refused(pattern: str, names: list[str]) -> None:
    """Is an expression as others."""
    assert await fitting(pattern, ["x", "(x)", "x-{id}", "1"], "p") == names


async def test_anywhere() -> None:
    """In a name, in letters of any case: as lists of RabbitMQ's API have it."""
    assert await fitting("B+", ["abc", "ABBA", "c"], "p", anywhere=True) == ["abc", "ABBA"]


async def test_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes all of it is refused as what takes all the time is."""

    def takes_all(*_: object) -> list[str]:
        raise MemoryError

    monkeypatch.setattr(matching, "_fitting", takes_all)
    with pytest.raises(IllegalConfiguration, match="memory"):
        await fitting("a", ["a"], "p")


async def test_all_names_together_have_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes no long time for one name takes none for hundreds of them, and others have their turns meanwhile."""
    monkeypatch.setattr(matching, "PATIENCE", 0.3)
    began, turns = process_time(), 0
    asked = asyncio.ensure_future(fitting(SLOW, NAMES, "queueNamePattern"))
    while not asked.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert process_time() - began < 2
    assert turns > 3
    with pytest.raises(IllegalConfiguration, match="queueNamePattern: "):
        await asked


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "missing"),
        ("(" * 1000, "inside one another"),
        ("a" * 1001, "longer than"),
        ("((((.*){50}){50}){50}){50}", "as often"),
        ("(.{0,999999}){2}", "as often"),
        ("a{" + "9" * 900 + "}", "as often"),
        ("(?x)(?:(?:ab{ 1000 }){ 1 000 }){ 10 }", "spaces"),
        ("a(?i-s)(?i0V1x:b{ 10000 })", "spaces"),
        ("(?:(?R)|a)+", "calls itself"),
        ("(?P<a>b(?P>a)?)(?&a)", "calls itself"),
        ("((?1)|a)+", "calls itself"),
        ("(?:a{e<=3})*b", "nearly"),
        ("(?:a{1<=e<4})*b", "nearly"),
        ("(?:a){2i+1d<=4}", "nearly"),
    ],
)
async def test_what_is_not_even_begun(pattern: str, why: str) -> None:
    """What is no expression, or one that is large when it is made: before it is."""
    began = process_time()
    with pytest.raises(IllegalConfiguration, match=f"p: .*{why}"):
        await fitting(pattern, NAMES, "p")
    assert process_time() - began < 1
