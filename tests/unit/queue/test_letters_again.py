"""What is on record of dead letters that go on again."""

from __future__ import annotations

from collections.abc import Callable

from services.rpc import ledger_pb2 as ledger
from tests.support.queue_house import House
from tests.unit.queue.test_moved_on_record import rows

Recorded = Callable[[], ledger.LedgerBatch]


async def test_a_full_queue(house: House, recorded: Recorded) -> None:
    """Where no queue takes them, they have ended once: each further attempt is told as another way that they went."""
    source = await house.declare("source", message_ttl=1, dead_letter_exchange="", dead_letter_routing_key="parked")
    parked = await house.declare("parked", max_length=1, overflow="reject-publish")
    link = await house.link()
    await link.publish(parked, [b"there"])
    await link.publish(source, [b"letter"])
    office = house.queues["queue-1"]._partitions._office
    await link.until(lambda: any(letter.tries > 2 for its in office._open.values() for letter in its))
    await link.attach(parked, settled=True)
    await link.until(lambda: sorted(link.bodies) == [b"letter", b"there"] and not office._open)
    told = recorded()
    assert rows(told, ledger.DEAD_LETTERED) == [("source", "", "expired")]
    again = rows(told, ledger.COPIED)
    assert len(again) >= 2
    assert set(again) == {("source", "", "expired")}
