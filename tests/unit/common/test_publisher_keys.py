"""Which routing keys a publisher says in a column, over real streams."""

from __future__ import annotations

from services.common.clients.partition_table import PartitionTable
from services.common.clients.publisher import Publisher
from services.common.message.columns import facts_in
from services.rpc import queue_pb2 as pb
from tests.support.programs import until
from tests.unit.common.test_publisher import RecordingTicket, ScriptedQueue, answered, assign, messages_of, publish


async def _says(publisher: Publisher, process: ScriptedQueue, name: str, *, persistent: bool = False) -> bool:
    """Whether a batch of new keys has a column of them; either way they are read."""
    its = messages_of(*[b"x"] * 9)
    its.facts = [
        each._replace(routing_key=f"{name} {number}", persistent=persistent) for number, each in enumerate(its.facts)
    ]
    publish(publisher, its, ticket := RecordingTicket())
    await answered(ticket)
    assert facts_in(process.batches[-1]) == its.facts
    return bool(process.batches[-1].keys)


async def test_only_who_reads_them_is_sent_keys(
    queues: list[ScriptedQueue], table: PartitionTable, publisher: Publisher
) -> None:
    """By what it has said on this stream: who comes back may be of a former release."""
    process = queues[0]
    assign(table, p0=process)
    assert not await _says(publisher, process, "first")
    process.say(pb.QueueFrame(reads_keys=True, blocked=pb.Blocked(queue_ids=[9])))
    await until(lambda: (link := publisher.link_of(1)) and link.full)
    assert await _says(publisher, process, "second")
    assert not await _says(publisher, process, "third", persistent=True)
    process.break_streams()
    await until(lambda: (link := publisher.link_of(1)) and not link.full)
    assert not await _says(publisher, process, "fourth")
