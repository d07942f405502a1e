"""The gRPC service by which mgmt follows what a process logs."""
# ruff: noqa: N802 - the contract names the methods

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from services.common.clock import epoch_ns, monotonic
from services.common.log_lines import RECENT, LogLine, RecentLines
from services.rpc.logs_pb2 import FollowRequest, Line, Lines
from services.rpc.logs_pb2_grpc import LogsServicer

PACE: Final = 0.25
"""Seconds between looks: a batch of lines, however fast they come."""
_AT_ONCE: Final = 200


class LogServing(LogsServicer):
    """hopline.logs.Logs."""

    def __init__(self, recent: RecentLines = RECENT) -> None:
        self._recent = recent

    async def Follow(self, request: FollowRequest, context: Any) -> AsyncIterator[Lines]:  # noqa: ANN401, ARG002 - generic in its stubs only
        async for each in followed(self._recent):
            yield each


async def followed(recent: RecentLines) -> AsyncIterator[Lines]:
    """Who it is at first, then the lines that are known, and those that come."""
    yield Lines(process=recent.process)
    after = 0
    while True:
        closing = recent.closing  # before the look: what was logged by then is told yet
        if lines := recent.since(after, _AT_ONCE):
            yield Lines(process=recent.process, lines=map(_told, lines), now_us=epoch_ns() // 1000)
            after = lines[-1].number
        elif closing:
            return
        await asyncio.sleep(0 if len(lines) == _AT_ONCE else PACE)  # others have their turn


def _told(line: LogLine) -> Line:
    told = Line(number=line.number, time_us=line.time_us, level=line.level, logger=line.logger, text=line.text)
    told.service, told.instance = line.service, line.instance
    told.age_us = max(int((monotonic() - line.logged) * 1e6), 0)
    for name, value in line.whose.items():
        setattr(told, name, value)
    return told
