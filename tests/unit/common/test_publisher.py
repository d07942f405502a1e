"""The publisher against queue processes that are scripted by the tests, over real gRPC on unix sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc.aio

from services.common.clients.link_frame import Settlement
from services.common.clients.outbound import Messages, Refused
from services.common.clients.partition_table import PartitionTable
from services.common.clients.pressure import Congestion, Pressure
from services.common.clients.publisher import Publisher
from services.rpc import queue_pb2 as pb
from services.rpc import store_pb2
from services.rpc.queue_pb2_grpc import QueueServicer, add_QueueServicer_to_server
from tests.support.messages import messages
from tests.support.programs import until

PARTITIONS = {1: 0, 2: 1}  # queue id → partition


class ScriptedQueue(QueueServicer):
    """Records what arrives; answers `done` at once while `answering`."""

    def __init__(self, path: Path) -> None:
        self.address = f"unix:{path}"
        self.batches: list[pb.PublishBatch] = []
        self.said: list[str] = []  # what other than greetings came, in its order within frames and between them
        self.settles: list[pb.Settle] = []
        self.heard: list[int] = []
        self.largest = 0  # bytes of a frame
        self.answering = True
        self.refuse: pb.Reason.ValueType = pb.NONE
        self.streams: list[asyncio.Queue[pb.QueueFrame | None]] = []
        self._server = grpc.aio.server(options=[("grpc.max_receive_message_length", 64 << 20)])
        add_QueueServicer_to_server(self, self._server)  # type: ignore[no-untyped-call]
        self._server.add_insecure_port(self.address)

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(None)

    async def Attach(  # noqa: N802 - gRPC names it
        self, frames: AsyncIterator[pb.LinkFrame], _context: Any
    ) -> AsyncIterator[pb.QueueFrame]:
        answers: asyncio.Queue[pb.QueueFrame | None] = asyncio.Queue()
        self.streams.append(answers)
        reader = asyncio.create_task(self._read(frames, answers))
        while (answer := await answers.get()) is not None:
            yield answer
        reader.cancel()

    async def _read(self, frames: AsyncIterator[pb.LinkFrame], answers: asyncio.Queue[pb.QueueFrame | None]) -> None:
        async for frame in frames:
            self.settles += frame.settles
            self.said += [name for name in ("attaches", "publishes", "told") if getattr(frame, name)]
            self.largest = max(self.largest, frame.ByteSize())
            self.heard += [frame.heard] if frame.heard else []
            for raw in frame.publishes:
                batch = pb.PublishBatch.FromString(raw)
                self.batches.append(batch)
                if self.answering:
                    await answers.put(self._answer(batch))

    def say(self, frame: pb.QueueFrame) -> None:
        for answers in self.streams:
            answers.put_nowait(frame)

    def _answer(self, batch: pb.PublishBatch) -> pb.QueueFrame:
        frame = pb.QueueFrame(done=[batch.sequence])
        if self.refuse != pb.NONE:
            queue_id = batch.queues[0].queue_id
            frame.refusals.add(sequence=batch.sequence, first=0, count=1, queue_id=queue_id, reason=self.refuse)
        return frame

    def break_streams(self) -> None:
        for answers in self.streams:
            answers.put_nowait(None)
        self.streams.clear()


class RecordingTicket:
    def __init__(self) -> None:
        self.answer: asyncio.Future[list[Refused]] = asyncio.get_running_loop().create_future()

    def settled(self, numbers: Sequence[int], refusals: list[Refused]) -> None:
        assert numbers
        self.answer.set_result(refusals)


def messages_of(*bodies: bytes, queue_ids: tuple[int, ...] = (1,)) -> Messages:
    return messages(list(bodies), queue_ids, persistent=True)


def assign(table: PartitionTable, epoch: int = 1, **owners: ScriptedQueue) -> None:
    """`p0=queue` makes `queue` the owner of partition 0."""
    leases, members = [], {}
    for name, queue in owners.items():
        member = queue.address
        members[member] = store_pb2.Member(member=member, address=queue.address)
        leases.append(store_pb2.Lease(name=f"partition/{name[1:]}", epoch=epoch, member=member, address=queue.address))
    table.apply(store_pb2.LeaseTable(leases=leases, members=members.values()))


def publish(publisher: Publisher, its: Messages, ticket: RecordingTicket | None) -> Pressure | None:
    its.uids = publisher.uids.take(len(its))
    return publisher.publish(its, ticket)


async def answered(ticket: RecordingTicket) -> list[Refused]:
    return await asyncio.wait_for(ticket.answer, 5)


async def under_way(publisher: Publisher, queue: ScriptedQueue, *bodies: bytes) -> list[RecordingTicket]:
    """Messages that the owner has, a batch each, and does not answer until it is told to."""
    queue.answering = False
    tickets = [RecordingTicket() for _ in bodies]
    for number, (body, ticket) in enumerate(zip(bodies, tickets, strict=True), 1):
        publish(publisher, messages_of(body), ticket)
        await until(lambda number=number: len(queue.batches) == number)
    return tickets


async def test_messages_are_settled_when_its_owner_has_it(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """A ticket hears once, without refusals, when the queue process said done."""
    assign(table, p0=queues[0])
    ticket = RecordingTicket()
    publish(publisher, messages_of(b"one", b"two"), ticket)
    assert await answered(ticket) == []
    assert [bytes(body) for body in queues[0].batches[0].bodies] == [b"one", b"two"]


async def test_what_is_enough_does_not_wait_for_the_end_of_the_turn(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """What is published in one turn makes one batch, but for those that are 64 KiB together: they go at once."""
    assign(table, p0=queues[0])
    first, last = RecordingTicket(), RecordingTicket()
    publish(publisher, messages_of(b"connected"), first)
    await answered(first)
    for _ in range(3):
        publish(publisher, messages_of(bytes(40 << 10)), None)
    publish(publisher, messages_of(b"small"), last)
    await answered(last)
    assert [len(batch.uids) for batch in queues[0].batches] == [1, 2, 2]


async def test_messages_for_two_owners_waits_for_both(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """A message that goes to queues of two processes is safe when both have it, under one uid."""
    assign(table, p0=queues[0], p1=queues[1])
    queues[1].answering = False
    ticket = RecordingTicket()
    publish(publisher, messages_of(b"x", queue_ids=(1, 2)), ticket)
    while not (queues[0].batches and queues[1].batches):
        await asyncio.sleep(0.01)
    assert not ticket.answer.done()
    assert queues[0].batches[0].uids == queues[1].batches[0].uids
    queues[1].streams[0].put_nowait(pb.QueueFrame(done=[1]))
    assert await answered(ticket) == []


async def test_what_a_dead_owner_had_not_confirmed_goes_to_its_successor(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """What is not confirmed is sent again under the same uids, marked resent, in order, before newer ones."""
    assign(table, p0=queues[0])
    tickets = [*await under_way(publisher, queues[0], b"0", b"1"), RecordingTicket()]
    queues[0].break_streams()
    await queues[0].stop()
    assign(table, p0=queues[1])
    publish(publisher, messages_of(b"2"), tickets[2])
    for ticket in tickets:
        assert await answered(ticket) == []
    bodies = [bytes(body) for batch in queues[1].batches for body in batch.bodies]
    uids = [uid for batch in queues[1].batches for uid in batch.uids]
    assert (bodies, uids) == ([b"0", b"1", b"2"], sorted(uids))
    assert uids[:2] == [uid for batch in queues[0].batches for uid in batch.uids]
    assert queues[1].batches[0].resent


async def test_nothing_overtakes_what_a_former_owner_may_still_refuse(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """A partition that moved is served by its new owner only when the old one has answered, so uids still ascend."""
    assign(table, p0=queues[0], p1=queues[1])
    [first], second = await under_way(publisher, queues[0], b"1"), RecordingTicket()
    assign(table, p0=queues[1], p1=queues[0])
    publish(publisher, messages_of(b"2"), second)
    await asyncio.sleep(0.2)
    assert queues[1].batches == []
    queues[0].refuse = pb.NOT_OWNER
    queues[0].streams[0].put_nowait(queues[0]._answer(queues[0].batches[0]))
    assert await answered(first) == await answered(second) == []
    assert [bytes(body) for batch in queues[1].batches for body in batch.bodies] == [b"1", b"2"]


async def test_nothing_overtakes_what_any_former_owner_may_still_refuse(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """A partition that moves on, or back, before its first owner has answered still waits for that answer."""
    assign(table, p0=queues[0], p1=queues[1])
    [first], second = await under_way(publisher, queues[0], b"1"), RecordingTicket()
    assign(table, p0=queues[1], p1=queues[0])
    assign(table, p0=queues[0], p1=queues[1])
    publish(publisher, messages_of(b"2"), second)
    await asyncio.sleep(0.2)
    assert len(queues[0].batches) == 1
    queues[0].answering = True
    queues[0].say(
        pb.QueueFrame(done=[1], refusals=[pb.Refusal(sequence=1, first=0, count=1, queue_id=1, reason=pb.NOT_OWNER)])
    )
    assert await answered(first) == await answered(second) == []
    assert [bytes(body) for batch in queues[0].batches[1:] for body in batch.bodies] == [b"1", b"2"]


async def test_what_follows_refused_messages_is_sent_again_with_it(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """An owner that does not know yet that it is one: nothing goes to it again before all that it had is answered."""
    assign(table, p0=queues[0])
    tickets = [*await under_way(publisher, queues[0], b"0", b"1"), RecordingTicket()]
    refusal = {"first": 0, "count": 1, "queue_id": 1, "reason": pb.NOT_OWNER}
    queues[0].say(pb.QueueFrame(done=[1], refusals=[pb.Refusal(sequence=1, **refusal)]))
    await asyncio.sleep(0.2)
    publish(publisher, messages_of(b"2"), tickets[2])
    await asyncio.sleep(0.2)
    assert len(queues[0].batches) == 2
    queues[0].answering = True
    queues[0].say(pb.QueueFrame(done=[2], refusals=[pb.Refusal(sequence=2, **refusal)]))
    for ticket in tickets:
        assert await answered(ticket) == []
    again = queues[0].batches[2:]
    assert [bytes(body) for batch in again for body in batch.bodies] == [b"0", b"1", b"2"]
    assert again[0].resent


async def test_not_owner_is_tried_again_and_other_refusals_are_told(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """NOT_OWNER never reaches a publisher; a refusal for overflow does."""
    assign(table, p0=queues[0])
    queues[0].refuse = pb.NOT_OWNER
    ticket = RecordingTicket()
    publish(publisher, messages_of(b"x"), ticket)
    while len(queues[0].batches) < 2:
        await asyncio.sleep(0.01)
    queues[0].refuse = pb.OVERFLOW
    assert await answered(ticket) == [(range(1), 1, pb.OVERFLOW)]


async def test_publishers_wait_while_a_queue_process_is_out_of_memory(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """Blocked is told at the next publish, and relieved when the process has room."""
    assign(table, p0=queues[0])
    await answered(await _publish(publisher))
    queues[0].streams[0].put_nowait(pb.QueueFrame(blocked=pb.Blocked(queue_ids=[1])))
    while (state := publish(publisher, messages_of(b"x"), None)) is None or state.state is not Congestion.BLOCKED:
        await asyncio.sleep(0.01)
    relieved = asyncio.Event()
    publisher.when_relieved(state, relieved, relieved.set)
    queues[0].streams[0].put_nowait(pb.QueueFrame(blocked=pb.Blocked()))
    await asyncio.wait_for(relieved.wait(), 5)


async def _publish(publisher: Publisher) -> RecordingTicket:
    ticket = RecordingTicket()
    publish(publisher, messages_of(b"x"), ticket)
    return ticket


async def test_what_waits_goes_out_in_frames_of_bearable_size(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """60 MB that were published in one turn are several batches, in order, each done by itself."""
    assign(table, p0=queues[0])
    await answered(await _publish(publisher))
    tickets = [RecordingTicket() for _ in range(15)]
    for number, ticket in enumerate(tickets):
        publish(publisher, messages_of(b"%02d" % number * (2 << 20)), ticket)
    for ticket in tickets:
        assert await answered(ticket) == []
    sizes = [sum(map(len, batch.bodies)) for batch in queues[0].batches[1:]]
    assert len(sizes) >= 4
    assert max(sizes) <= 16 << 20
    order = [bytes(body[:2]) for batch in queues[0].batches[1:] for body in batch.bodies]
    assert order == [b"%02d" % number for number in range(15)]


async def test_a_full_process_holds_up_no_others_publishers(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """A publisher waiting for one queue process goes on when that took what was under way, regardless of others."""
    assign(table, p0=queues[0], p1=queues[1])
    for queue_id in (1, 2):
        ticket = RecordingTicket()
        publish(publisher, messages_of(b"x", queue_ids=(queue_id,)), ticket)
        await answered(ticket)
    queues[0].answering = False
    relieved = {1: asyncio.Event(), 2: asyncio.Event()}
    for queue_id in (1, 2):
        pressure = publish(publisher, messages_of(b"x" * (9 << 20), queue_ids=(queue_id,)), None)
        assert pressure is not None
        assert pressure.state is Congestion.FULL
        publisher.when_relieved(pressure, relieved[queue_id], relieved[queue_id].set)
    await asyncio.wait_for(relieved[2].wait(), 5)
    assert not relieved[1].is_set()


async def test_what_is_unavailable_is_tried_again(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """A refusal that says try again is no answer for a publisher."""
    assign(table, p0=queues[0])
    queues[0].refuse = pb.UNAVAILABLE
    ticket = RecordingTicket()
    publish(publisher, messages_of(b"x"), ticket)
    while len(queues[0].batches) < 2:
        await asyncio.sleep(0.01)
    queues[0].refuse = pb.NONE
    assert await answered(ticket) == []


async def test_unanswered_settlements_are_given_back(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """What was settled is kept until the queue process has answered; what belongs to a transaction never is."""
    assign(table, p0=queues[0])
    await until(lambda: publisher.link_of(1) is not None)
    link = publisher.link_of(1)
    assert link is not None
    for uid in (1, 2, 3):
        link.settle(1, pb.ACCEPT, [uid])
        await until(lambda uid=uid: len(queues[0].settles) == uid)
    link.settle(1, pb.ACCEPT, [4], transaction=9)
    link.settle(2, pb.REJECT, [5])
    queues[0].say(pb.QueueFrame(settled=[1, 3]))
    await until(lambda: len(link._unanswered) == 2)
    assert link.take_unsettled(lambda queue_id: queue_id == 1) == [Settlement(1, pb.ACCEPT, [2])]
    assert link.take_unsettled(lambda _: True) == [Settlement(2, pb.REJECT, [5])]


async def test_an_idle_publisher_says_what_it_has_heard(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """Owners keep what may come again until its publisher knows of the answer, and it may have no more to ask for."""
    assign(table, p0=queues[0])
    for body in (b"0", b"1"):
        ticket = RecordingTicket()
        publish(publisher, messages_of(body), ticket)
        await answered(ticket)
    while not queues[0].heard or queues[0].heard[-1] != 2:
        await asyncio.sleep(0.01)
    publish(publisher, messages_of(b"2"), last := RecordingTicket())
    await answered(last)
    await publisher.stop()
    while queues[0].heard[-1] != 3:
        await asyncio.sleep(0.01)
