"""Dead letters are where they go to once, though their next owner sends them on again."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.clock import epoch_ms
from services.queue.dead_letters.office import DeadLetterOffice
from services.queue.partitions import partitions
from services.rpc import queue_pb2 as pb
from services.rpc.router_pb2 import Bind, ChangeRequest
from tests.support.queue_house import House, RawLink
from tests.unit.queue.test_hand_over import another_owner
from tests.unit.queue.test_not_safe import Breaks, _batch_not_offered, _frame_not_made, _frame_refused

BODIES = [b"1", b"2", b"3"]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The bodies of all letters that were sent on."""
    found, publish = list[bytes](), DeadLetterOffice._publish

    def publishes(self: DeadLetterOffice, addressed: Any) -> None:
        found.extend(letter.letter.entry.message.body for letter, _ in addressed)
        publish(self, addressed)

    monkeypatch.setattr(DeadLetterOffice, "_publish", publishes)
    return found


def never_let_go(broken: pytest.MonkeyPatch, office: DeadLetterOffice) -> None:
    """The owner dies, or leaves, before it knows that its letters were taken; the next one does know."""
    broken.setattr(office, "_let_go", lambda *_: None)
    broken.setattr(office, "sends", lambda *_: False)


async def all_taken(link: RawLink, targets: list[int]) -> None:
    """All of them are in each of these, and acknowledged, one of them in each excepted."""
    await link.until(lambda: len(link.uids) == len(BODIES) * len(targets))
    consumers = [run.consumer for run in link.runs for _ in range(run.count)]
    for at, queue_id in enumerate(targets, 1):
        its = [uid for uid, consumer in zip(link.uids, consumers, strict=True) if consumer == at]
        await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=its[1:])])
        await link.ready(queue_id, at)


@pytest.mark.parametrize(("durable", "killed"), [(True, True), (True, False), (False, False)])
async def test_another_owner(
    house: House, monkeypatch: pytest.MonkeyPatch, sent: list[bytes], durable: bool, killed: bool
) -> None:
    """Of their old queue and of both targets of a fan-out: a kill leaves the journal, a move all."""
    source = await house.declare("source", durable=durable, message_ttl=50, dead_letter_exchange="dlx")
    targets = [await house.declare(name, durable=durable) for name in ("one", "two")]
    await house.declare_exchange("dlx", "one", "key")
    await house.topology.change(
        ChangeRequest(virtual_host="/", bind=Bind(source="dlx", destination="two", routing_key="key"))
    )
    link = await house.link()
    with monkeypatch.context() as broken:
        never_let_go(broken, house.queues["queue-1"]._partitions._office)
        if killed:
            broken.setattr(partitions, "frames", lambda *_: ())
        for at, queue_id in enumerate(targets, 1):
            await link.attach(queue_id, at)
        await link.publish(source, BODIES, persistent=durable, time_ms=epoch_ms())
        await all_taken(link, targets)
        await link.close()
        await another_owner(house)
    link = await house.link(origin=1001)
    office = house.queues["queue-1"]._partitions._office
    await link.until(lambda: sorted(sent) == sorted(BODIES * 2) and not office._open)
    assert [await link.ready(queue_id, at) for at, queue_id in enumerate(targets, 1)] == [1, 1]


@pytest.mark.parametrize("breaks", [_frame_not_made, _frame_refused, _batch_not_offered])
async def test_what_was_not_written(
    house: House, monkeypatch: pytest.MonkeyPatch, sent: list[bytes], breaks: Breaks
) -> None:
    """It is not taken for safe when it comes again: the journal has it once its old queue has let go of it."""
    source = await house.declare("source", message_ttl=50, dead_letter_exchange="dlx")
    target = await house.declare("target", durable=True)
    await house.declare_exchange("dlx", "target", "key")
    link = await house.link()
    with monkeypatch.context() as broken:
        breaks(broken, house.queues["queue-1"]._host)
        await link.publish(source, [b"1"], persistent=True, time_ms=epoch_ms())
        await link.until(lambda: len(sent) == 1)
        office = house.queues["queue-1"]._partitions._office
        await link.until(lambda: all(letter.tries for its in office._open.values() for letter in its))
    await link.until(lambda: len(sent) > 1 and not office._open)
    await link.close()
    monkeypatch.setattr(partitions, "frames", lambda *_: ())
    await another_owner(house)
    link = await house.link(origin=1001)
    assert await link.ready(target, 1) == 1
