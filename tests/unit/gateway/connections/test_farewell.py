"""A connection ends with any outcome of its requests."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from services.common.runtime import Tasks
from services.gateway import vocabulary as v
from services.gateway.connections.farewell import Farewell


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
        self._fault = fault

    async def end_sessions(self) -> None:
        raise self._fault

    def write(self) -> None:
        self.said.append("written")

    def part(self, *, peer_first: bool) -> None:
        self.said.append("peer first" if peer_first else "at once")
        self.parted.set()


@pytest.mark.parametrize("fault", [TimeoutError(), ValueError("a fault of ours")], ids=repr)
async def test_close_ok_comes_in_any_case(fault: Exception) -> None:
    """Sessions that cannot be ended do not leave the client without an answer, nor the socket open."""
    connection: Any = Connection(fault)
    farewell, close = Farewell(connection), v.Close(0)
    farewell.say(close)
    await asyncio.wait_for(connection.parted.wait(), 10)
    assert connection.said == [close, "written", "peer first"]


@pytest.mark.parametrize(("reason", "how"), [("", "peer first"), ("FRAME_ERROR - no frame", "at once")])
async def test_who_said_goodbye_ends_the_stream(reason: str, how: str) -> None:
    """A client that wished to close ends the stream itself; one that is told what was wrong finds it ended."""
    connection: Any = Connection(TimeoutError())
    connection.sessions, connection.owns_queues, connection.closing = {}, False, True
    Farewell(connection).say(v.Close(0, reason))
    assert connection.said[-1] == how
