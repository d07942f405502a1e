"""Lines that any client can cause do not fill the log."""

from __future__ import annotations

import asyncio

from structlog import get_logger
from structlog.testing import capture_logs

from services.common.few_lines import FewLines
from tests.support.programs import until


async def test_lines_and_how_many_more() -> None:
    """So many of each kind are said, then how many were not, and then it begins again."""
    few, log = FewLines(most=3, seconds=0.05), get_logger()
    with capture_logs() as told:
        for number in range(10):
            few.say(log.info, "one", number=number)
        few.say(log.warning, "other", number=0)
        assert [(each["event"], each["number"]) for each in told] == [("one", 0), ("one", 1), ("one", 2), ("other", 0)]
        await until(lambda: len(told) == 5)
        assert (told[-1]["like"], told[-1]["count"], told[-1]["log_level"]) == ("one", 7, "info")
        few.say(log.info, "one", number=10)
        few.say(log.warning, "other", number=1)
        await asyncio.sleep(0.1)
    assert [each["number"] for each in told[5:]] == [10, 1]


async def test_lines_that_are_kept_apart() -> None:
    """By more than what they say: one who is named does not hide another, and each is told how many were left out."""
    few, log = FewLines(most=1, seconds=0.05), get_logger()
    with capture_logs() as told:
        for name in ("a", "b") * 3:
            few.say(log.info, "one", apart_by=name, name=name)
        assert [each["name"] for each in told] == ["a", "b"]
        await until(lambda: len(told) == 4)
    assert [(each["of"], each["count"]) for each in told[2:]] == [("a", 2), ("b", 2)]
