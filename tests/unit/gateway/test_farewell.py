"""A connection ends whatever becomes of its requests."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from services.common.runtime import Tasks
from services.gateway import vocabulary as v
from services.gateway.farewell import Farewell


class Connection:
    """One with a session, whose end is as the test says."""

    def __init__(self, fault: BaseException) -> None:
        self.name = self.peer = "a"
        self.sessions = {1: None}
        self.closing = self.lost = self.parting = False
        self.tasks = Tasks()
        self.said: list[object] = []
        self.engine = SimpleNamespace(succeed=self.said.append)
        self.parted = asyncio.Event()
        self.part = self.parted.set
        self._fault = fault

    async def end_sessions(self) -> None:
        raise self._fault

    def write(self) -> None:
        self.said.append("written")


@pytest.mark.parametrize("fault", [TimeoutError(), ValueError("a fault of ours")], ids=repr)
async def test_close_ok_comes_in_any_case(fault: Exception) -> None:
    """Sessions that cannot be ended do not leave the client without an answer, nor the socket open."""
    connection: Any = Connection(fault)
    farewell, close = Farewell(connection), v.Close(0)
    farewell.say(close)
    await asyncio.wait_for(connection.parted.wait(), 10)
    assert connection.said == [close, "written"]
