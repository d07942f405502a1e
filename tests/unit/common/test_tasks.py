"""Background tasks that fail are logged as what they are, and their owner is told."""

from __future__ import annotations

import asyncio
import gc

import pytest
from structlog.testing import capture_logs

from services.common.errors import Fenced
from services.common.runtime import Tasks, shielded


async def _fail(failure: Exception) -> None:
    raise failure


@pytest.mark.parametrize(("failure", "said"), [(Fenced("epoch 2"), "reason"), (KeyError("x"), "exc_info")])
async def test_a_task_that_fails_is_logged_once(failure: Exception, said: str) -> None:
    """What is meant to be raised says in a line what happened; a fault comes with its traceback."""
    told: list[BaseException] = []
    with capture_logs() as lines:
        Tasks(told.append).start(_fail(failure), "work")
        await asyncio.sleep(0.01)
    assert told == [failure]
    assert [sorted(line.keys()) for line in lines] == [sorted(["do", "event", "log_level", "task", said])]


async def test_a_failure_that_is_not_awaited_is_no_news() -> None:
    """Work goes on when its caller is cancelled; if it fails then, the event loop does not report it."""
    reported: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(context))
    work: asyncio.Future[None] = loop.create_future()
    waiting = asyncio.ensure_future(shielded(work))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    work.set_exception(Fenced("epoch 2"))
    await asyncio.sleep(0)
    assert waiting.cancelled()
    del work, waiting
    gc.collect()
    assert not reported


async def test_a_caller_that_still_waits_gets_the_failure() -> None:
    """Work that fails raises what it failed with."""
    work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(shielded(work))
    await asyncio.sleep(0)
    work.set_exception(Fenced("epoch 2"))
    with pytest.raises(Fenced):
        await waiting
