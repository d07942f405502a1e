"""What is cancelled ends, also where a library took the cancellation for its own."""

from __future__ import annotations

import asyncio
import gc

import pytest

from services.common import runtime
from services.common.clients.calls import result
from services.common.runtime import Tasks, within


async def deaf(times: int) -> str:
    """Takes no notice of so many cancellations, as gRPC's calls and NATS's client do at the wrong moment."""
    for _ in range(times):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue
    return "reply"


async def test_a_task_that_takes_no_notice_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopping returns when all tasks have ended, however often that has to be said."""
    monkeypatch.setattr(runtime, "_CANCEL_AGAIN", 0.01)
    tasks = Tasks()

    async def run() -> None:
        await deaf(2)
        await asyncio.Event().wait()

    task = tasks.start(run(), "deaf")
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await tasks.stop()
    assert task.cancelled()


class _CannotStart:
    """A service that has begun something when it finds that it cannot run."""

    def __init__(self, begun: list[asyncio.Task[None]]) -> None:
        self._begun = begun

    async def start(self) -> None:
        self._begun.append(asyncio.ensure_future(self._work()))
        await asyncio.sleep(0)
        raise OSError("the port is taken")

    async def stop(self) -> None:
        raise AssertionError("it has not started")

    async def _work(self) -> None:
        await deaf(2)
        await asyncio.Event().wait()


def test_a_process_that_cannot_start_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says why, also when something that it has begun takes no notice of being cancelled."""
    monkeypatch.setattr(runtime, "_CANCEL_AGAIN", 0.01)
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)
    begun: list[asyncio.Task[None]] = []

    async def create() -> _CannotStart:
        return _CannotStart(begun)

    with pytest.raises(OSError, match="the port is taken"):
        runtime.run(create)
    assert begun[0].cancelled()


async def test_a_reply_does_not_undo_a_cancellation() -> None:
    """A caller that is cancelled while the reply comes is cancelled; a reply to one cancelled before is a reply."""
    waiting = asyncio.ensure_future(result(asyncio.ensure_future(deaf(1))))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await result(asyncio.ensure_future(deaf(0))) == "reply"


async def test_time_is_up_also_for_who_takes_no_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that tries for ever, and swallows the first word that time is up, is told again; nothing runs on."""
    monkeypatch.setattr(runtime, "_CANCEL_AGAIN", 0.01)

    async def tries_for_ever() -> None:
        await deaf(2)
        await asyncio.Event().wait()

    async with asyncio.timeout(60):
        with pytest.raises(TimeoutError):
            await within(0.01, tries_for_ever())
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_comes_in_time() -> None:
    """Is the result, or the failure; also what comes as time is up, where the word of it was swallowed."""
    assert await within(60, deaf(0)) == "reply"
    assert await within(0.01, deaf(1)) == "reply"

    async def fails() -> None:
        raise OSError("refused")

    with pytest.raises(OSError, match="refused"):
        await within(60, fails())


async def test_who_waits_is_cancelled() -> None:
    """The work is cancelled with it."""
    waiting = asyncio.ensure_future(within(60, asyncio.Event().wait()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert asyncio.all_tasks() == {asyncio.current_task()}
