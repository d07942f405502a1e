"""Background tasks that fail are logged as what they are, and their owner is told."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from services.common.errors import Fenced
from services.common.runtime import Tasks


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
    assert [sorted(line.keys()) for line in lines] == [sorted(["event", "log_level", "task", said])]
