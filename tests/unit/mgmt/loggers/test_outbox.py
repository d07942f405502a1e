"""Lines on their way to where a logger puts them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from services.mgmt.loggers import outbox
from services.mgmt.loggers.outbox import Outbox
from services.rpc.logs_pb2 import Line

_ROOM = 5


class _Slow(Outbox):
    """Each delivery waits until it may go on; the first ones fail."""

    def __init__(self, fail: int) -> None:
        self.delivered = list[str]()
        self.may_go_on = asyncio.Semaphore(0)
        self.began = 0
        self._fail = fail
        super().__init__("slow")

    async def _deliver(self, lines: Sequence[Line]) -> None:
        self.began += 1
        await self.may_go_on.acquire()
        if self.began <= self._fail:
            raise OSError(5, "away")
        self.delivered += [line.text for line in lines]

    async def _end(self) -> None:
        pass


def _lines(*texts: str) -> list[Line]:
    return [Line(time_us=1, level="INFO", text=text) for text in texts]


async def _until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0)


@pytest.mark.parametrize("fail", [0, 1])
async def test_lines_that_are_lost_during_a_delivery(monkeypatch: pytest.MonkeyPatch, fail: int) -> None:
    """They are counted, whatever becomes of that delivery, and nothing else is missing."""
    monkeypatch.setattr(outbox, "_WAITING", _ROOM)
    monkeypatch.setattr(outbox, "_AGAIN", 0.0)
    slow = _Slow(fail)
    slow.take(_lines("first"))
    await _until(lambda: slow.began == 1)
    slow.take(_lines(*(f"later {number}" for number in range(_ROOM + 2))))
    slow.may_go_on.release()
    await _until(lambda: slow.began == 2)
    slow.may_go_on.release()
    # What was not delivered waits again, before the others: it is the oldest.
    first, lost = ([], 3) if fail else (["first"], 2)
    wanted = [*first, f"{lost} lines are missing here", *(f"later {number}" for number in range(2, _ROOM + 2))]
    await _until(lambda: slow.delivered[-1:] == wanted[-1:])
    assert slow.delivered == wanted
    await slow.close()


async def test_no_more_wait_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a batch was on its way that comes back."""
    monkeypatch.setattr(outbox, "_WAITING", _ROOM)
    monkeypatch.setattr(outbox, "_AGAIN", 60.0)
    monkeypatch.setattr(outbox, "_LAST", 0.05)
    slow = _Slow(1)
    slow.take(_lines(*(f"first {number}" for number in range(_ROOM))))
    await _until(lambda: slow.began == 1)
    slow.take(_lines(*(f"later {number}" for number in range(_ROOM))))
    slow.may_go_on.release()
    await _until(lambda: slow.trouble)
    assert [line.text for line in slow.left()] == [f"later {number}" for number in range(_ROOM)]
    slow.may_go_on.release()
    await slow.close()
