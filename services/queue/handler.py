"""The gRPC face: one stream for each link, read here, written from here whenever nothing else is being written."""

from __future__ import annotations

import asyncio

import grpc.aio
import structlog

from services.common.runtime import Tasks
from services.queue.host import Host
from services.queue.link import Link
from services.rpc import queue_pb2_grpc
from services.rpc.queue_pb2 import LinkFrame, QueueFrame

log = structlog.get_logger()

_Context = grpc.aio.ServicerContext[LinkFrame, QueueFrame]


class Handler(queue_pb2_grpc.QueueServicer):
    """Service hopline.queue.Queue."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def Attach(self, _requests: object, context: _Context) -> None:  # type: ignore[override]  # noqa: N802
        """As the contract says; ends when the peer does."""
        link = Link(self._host)
        stream = _Stream(link, context)
        tasks = Tasks()
        tasks.start(stream.write_for_ever(), "link writer")
        try:
            await stream.read_for_ever()
        finally:
            link.close()
            await tasks.stop()
            log.info("link ended", peer=link.name)


class _Stream:
    """Reads frames and writes what they bring about in the same turn; the writer's task does what others bring about.

    While one of the two writes, what comes collects in the outbox and goes out with the next write.
    """

    def __init__(self, link: Link, context: _Context) -> None:
        self._link = link
        self._context = context
        self._writing = False

    async def read_for_ever(self) -> None:
        """Until the peer ends the stream."""
        link, context = self._link, self._context
        while isinstance(frame := await context.read(), LinkFrame):
            if frame.HasField("hello"):
                link.hello(frame.hello)
            link.receive(frame)
            await self._write()

    async def write_for_ever(self) -> None:
        """Whatever other links, the journal or the clock have for this one."""
        more = self._link.more
        while True:
            await more.wait()
            more.clear()
            await self._write()

    async def _write(self) -> None:
        if self._writing:
            return
        frame = self._link.outbox.take()
        if frame is None:
            return
        self._writing = True
        try:
            await self._context.write(frame)
        except asyncio.InvalidStateError:
            return  # the stream is over; its reader is told by gRPC
        finally:
            self._writing = False
        if self._link.outbox.pending:
            self._link.more.set()
