"""A writer's call, from its first frame on."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import grpc

from services.common.runtime import Tasks
from services.common.streams.call import Call
from services.common.streams.call_server import Details
from services.rpc import store_pb2 as pb
from services.store.handler import Handler
from services.store.journal import READ_AHEAD, Journal
from tests.support.stream_ends import until

FRAMES = 600  # so many that the call itself holds its stream until they are taken


class Held:
    """A stream that writes down whether it is held."""

    held = is_over = waits = False

    def hold(self, *, held: bool) -> None:
        self.held = held

    def end(self, _trailers: object) -> None: ...


class SlowCommitter:
    """Commits nothing yet."""

    def __init__(self) -> None:
        self.count = 0

    def submit(self, *_work: object) -> None:
        self.count += 1


async def test_many_frames_behind_a_large_one() -> None:
    """A writer that comes back with more than is read ahead is held, whatever came together with its first frame."""
    committer, stream, tasks = SlowCommitter(), Held(), Tasks()
    handler: Any = Handler(SimpleNamespace(journal=Journal(committer, None, None)))  # type: ignore[arg-type]
    method = grpc.stream_stream_rpc_method_handler(
        handler.Journal, pb.JournalFrame.FromString, pb.JournalAck.SerializeToString
    )

    async def find() -> object:
        return method

    call = Call(stream, find, Details("/hopline.store.Store/Journal", []), tasks, asks_many=True, largest=1 << 28)  # type: ignore[arg-type]
    large = pb.JournalFrame(sequence=1, origin=7)
    large.contents.add().columns = bytes(READ_AHEAD + 1)
    for frame in (large, *(pb.JournalFrame(sequence=2 + number) for number in range(FRAMES))):
        call.received(frame.SerializeToString())
    assert stream.held
    await until(lambda: committer.count == 1 + FRAMES)
    await asyncio.sleep(0)
    assert stream.held
    await tasks.stop()
