"""Lines of processes whose machines' clocks differ."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from services.common import log_lines, log_serving
from services.common.clock import epoch_ns
from services.common.log_lines import RecentLines
from services.common.log_serving import followed
from services.mgmt.loggers.following import Following
from services.mgmt.loggers.kind import now_us
from services.rpc.logs_pb2 import Line

HOUR_NS = 3600 * 10**9


async def _nothing() -> None:
    """Is waited for."""


@pytest.fixture(params=[-HOUR_NS, 0, HOUR_NS], ids=["behind", "right", "ahead"])
def elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> RecentLines:
    """What a process has logged whose clock is as said."""

    def its() -> int:
        return epoch_ns() + int(request.param)

    monkeypatch.setattr(log_lines, "epoch_ns", its)
    monkeypatch.setattr(log_serving, "epoch_ns", its)
    return RecentLines()


@pytest.fixture
async def taken(elsewhere: RecentLines) -> AsyncIterator[list[Line]]:
    """The lines that are followed."""
    lines = list[Line]()

    def take(new: Sequence[Line]) -> None:
        lines.extend(new)

    following = Following(dict, _nothing, take)
    task = asyncio.ensure_future(following._each(followed(elsewhere)))
    yield lines
    task.cancel()


def _say(process: RecentLines, text: str) -> None:
    process.add({"event": text, "level": "info"}, "x", own=True)


async def _came(lines: list[Line], count: int) -> None:
    async with asyncio.timeout(60):
        while len(lines) < count:
            await asyncio.sleep(0.01)


async def test_a_clock_that_differs(elsewhere: RecentLines, taken: list[Line]) -> None:
    """A logger tells what was logged before it began from what was logged then, whatever its machine's clock says."""
    _say(elsewhere, "before")
    await asyncio.sleep(0.2)
    since = now_us()
    _say(elsewhere, "then")
    await _came(taken, 2)
    assert [line.text for line in taken if line.known_us >= since] == ["then"]


@pytest.mark.parametrize("step_ns", [-HOUR_NS, HOUR_NS], ids=["back", "on"])
async def test_a_clock_that_is_set(step_ns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a line was logged, and before it is told: its age is counted by another clock."""
    process, lines = RecentLines(), list[Line]()
    since = now_us()
    _say(process, "said")
    monkeypatch.setattr(log_serving, "epoch_ns", lambda: epoch_ns() + step_ns)
    process.closing = True
    await Following(dict, _nothing, lines.extend)._each(followed(process))
    assert [since <= line.known_us <= now_us() for line in lines] == [True]


async def test_a_process_of_a_former_release(elsewhere: RecentLines) -> None:
    """It does not say what its clock is: that is taken for this machine's."""
    lines = list[Line]()
    following = Following(dict, _nothing, lines.extend)

    async def told() -> AsyncIterator[log_serving.Lines]:
        async for batch in followed(elsewhere):
            batch.ClearField("now_us")
            for line in batch.lines:
                line.ClearField("age_us")
            yield batch

    _say(elsewhere, "said")
    elsewhere.closing = True
    await following._each(told())
    assert [line.known_us <= now_us() for line in lines] == [True]
