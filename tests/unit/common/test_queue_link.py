"""A link to a process that is gone."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from services.common.clients.queue_link import QueueLink
from services.rpc import queue_pb2 as pb


@pytest.fixture
def no_collector() -> Iterator[None]:
    """As in a process that has little to do: what only the collector finds stays."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("given_up", [True, False])
async def test_a_stopped_link_connects_no_more(given_up: bool) -> None:
    """A process that has left for good is not called again."""
    attempts = 0

    def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal attempts
        attempts += 1
        writer.close()

    async with asyncio.timeout(60), await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        link = QueueLink("queue-1", f"127.0.0.1:{port}", lambda member: pb.Hello(member=member), Mock(), Mock())
        link.start()
        while attempts < 2:
            await asyncio.sleep(0.01)
        if given_up:
            link.give_up()
        await link.stop()
        while attempts:  # those that were under way
            attempts = 0
            await asyncio.sleep(1)


async def test_many_attaches_at_once() -> None:
    """All consumers of a process's queues come when its stream does: in frames that it takes, in their order.

    Those of a queue are in one: what none of them holds goes to others as soon as the frame is carried out.
    """
    written: list[pb.LinkFrame] = []
    link = QueueLink("queue-1", "127.0.0.1:1", lambda member: pb.Hello(member=member), Mock(), Mock())
    for number in range(10):
        link.attach(pb.AttachConsumer(consumer=number, queue_id=number // 3, selector="x" * (1 << 20)))
    link.told(1, 1, [])
    link.up, link._stream = True, Mock(full=False, write=lambda raw: written.append(pb.LinkFrame.FromString(raw)))
    link._write()
    assert all(frame.ByteSize() <= 6 << 20 for frame in written)
    assert len(written) > 1
    assert [each.consumer for frame in written for each in frame.attaches] == list(range(10))
    queues = [{each.queue_id for each in frame.attaches} for frame in written]
    assert sum(map(len, queues)) == len(set().union(*queues)) == 4
    assert [bool(frame.told) for frame in written] == [False] * (len(written) - 1) + [True]


async def test_what_a_client_gave_back_untried() -> None:
    """A process of a former release puts it back as if it had not been sent; this one's record knows better."""
    link = QueueLink("queue-1", "127.0.0.1:1", lambda member: pb.Hello(member=member), Mock(), Mock())
    for outcome, uid in ((pb.RETURN, 1), (pb.RETURN, 2), (pb.RESTORE, 3), (pb.RELEASE, 4)):
        link.settle(1, outcome, [uid])
    settles = [(each.outcome, each.had, list(each.uids)) for each in link._frame.fields.settles]
    assert settles == [(pb.RESTORE, True, [1, 2]), (pb.RESTORE, False, [3]), (pb.RELEASE, False, [4])]
