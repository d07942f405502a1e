"""What a process keeps of what it has logged, for who follows it."""

from __future__ import annotations

from services.common.log_lines import RecentLines
from services.common.log_serving import followed
from tests.support.others_turns import others_turns


def _said(count: int, text: str = "said") -> RecentLines:
    recent = RecentLines()
    for _ in range(count):
        recent.add({"event": text, "level": "info"}, "x", own=True)
    return recent


async def _numbers(recent: RecentLines) -> list[int]:
    recent.closing = True
    return [line.number async for batch in followed(recent) for line in batch.lines]


async def test_nobody_follows_meanwhile() -> None:
    """As when mgmt is killed: who follows next is told of all that was logged in some seconds."""
    recent = _said(1)
    told = followed(recent)
    await anext(told)
    await anext(told)
    await told.aclose()
    for _ in range(4999):
        recent.add({"event": "meanwhile", "level": "info"}, "x", own=True)
    assert await _numbers(recent) == [*range(1, 5001)]


async def test_it_has_an_end() -> None:
    """In lines and in bytes: the oldest go."""
    short = await _numbers(_said(11_000, ""))
    assert short[-1] == 11_000
    assert len(short) <= 10_000
    long = await _numbers(_said(2000, "x" * 8000))
    assert long == [*range(2001 - len(long), 2001)]
    assert len(long) * 8000 <= 4 << 20
    wide = await _numbers(_said(2000, "\N{GRINNING FACE}" * 2000))
    assert len(wide) * 8000 <= 4 << 20, "of memory, which characters take one to four of"


def test_whose_it_is_has_an_end() -> None:
    """Clients name themselves: that is cut."""
    recent = RecentLines()
    recent.add({"event": "said", "level": "info", "container": "x" * 100_000}, "x", own=True)
    assert [len(line.whose["container"]) for line in recent.since(0, 1)] == [255]


async def test_others_have_their_turn() -> None:
    """While somebody is told of many lines."""
    async with others_turns() as others:
        await _numbers(_said(4000))
    assert others.count >= 20
