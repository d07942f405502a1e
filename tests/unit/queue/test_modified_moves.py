"""What consumers have said of messages (AMQP 1.0, part 3, 3.4.5) is kept over the death of the queue's owner, and a
move.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.common.message import format_named
from services.common.message.amqp_1_0 import added
from services.common.message.amqp_1_0.values import Symbol
from services.queue.links.full import NOWHERE, Full
from services.queue.machine.delivery import not_for
from services.queue.partitions import partitions
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink
from tests.unit.queue.test_hand_over import another_owner

AMQP_0_9 = format_named("amqp-0-9")


def annotations(link: RawLink) -> dict[str, Any]:
    """Of the message that came last."""
    return {str(key): value for key, value in added.apart(AMQP_0_9.headers(link.properties[-1])).annotations.items()}


async def modify(link: RawLink, queue_id: int, *, consumer: int = 1, again: bool = True, **said: Any) -> None:
    """The message that was delivered last comes back."""
    raw = added.written({Symbol(key): value for key, value in said.items()})
    settle = pb.Settle(queue_id=queue_id, outcome=pb.RESTORE, had=True, uids=link.uids[-1:], annotations=raw)
    settle.consumer, settle.not_again = consumer, not again
    await link.send(settles=[settle])


# A transient message dies with its owner.
@pytest.mark.parametrize(("dies", "persistent"), [(True, True), (False, True), (False, False)])
async def test_over_owners(house: House, monkeypatch: pytest.MonkeyPatch, dies: bool, persistent: bool) -> None:
    """Each owner adds to what was said before it; what is accepted leaves nothing in the journal."""
    if dies:
        monkeypatch.setattr(partitions, "frames", lambda *_: ())
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=persistent)
    expected: dict[str, Any] = {}
    for origin in (1001, 1002, 1003):
        link = await house.link(origin=origin)
        await link.attach(queue_id, messages=3)
        for seen in range(2):
            await link.until(lambda: len(link.uids) > seen)  # noqa: B023 - awaited at once
            assert annotations(link) == expected
            said = {"last": origin, f"x-{origin}-{seen}": seen}
            expected |= said
            await modify(link, queue_id, **said)
        await link.until(lambda: len(link.uids) > 2)  # noqa: B023
        assert annotations(link) == expected
        await modify(link, queue_id, last=origin)
        await link.ready(queue_id, 1)
        await link.close()
        await another_owner(house)
    link = await house.link(origin=1004)
    await link.attach(queue_id)
    await link.until(lambda: link.uids)
    assert annotations(link) == expected
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids)])
    live = house.store._engine._live
    await link.until(lambda: not live.batches)


async def test_of_a_consumer_that_has_ended(house: House) -> None:
    """What it has said counts, though the next owner never knew it: a gateway tells that again."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.publish(queue_id, [b"1"])
    await link.attach(queue_id, messages=5)
    await link.until(lambda: link.uids)
    await modify(link, queue_id, consumer=0, why="late")
    await link.until(lambda: len(link.uids) == 2)
    assert annotations(link) == {"why": "late"}


async def test_one_note(house: House) -> None:
    """However often it is modified, the journal has one note of it."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=True)
    await link.attach(queue_id, messages=20)
    for seen in range(10):
        await link.until(lambda: len(link.uids) > seen)  # noqa: B023
        await modify(link, queue_id, n=seen)
    live = house.store._engine._live
    await link.until(lambda: len(link.uids) == 11 and len(live.batches) == 2)
    assert annotations(link) == {"n": 9}


async def test_another_queues_message(house: House) -> None:
    """A message that went to two queues has annotations in that where it was modified."""
    ids = [await house.declare(name, durable=True) for name in ("p", "q")]
    link = await house.link()
    await link.publish(ids, [b"1"], persistent=True)
    await link.attach(ids[0], 1)
    await link.until(lambda: link.uids)
    await modify(link, ids[0], why="late")
    await link.until(lambda: len(link.uids) == 2)
    assert annotations(link) == {"why": "late"}
    await link.attach(ids[1], 2)
    await link.until(lambda: len(link.uids) == 3)
    assert annotations(link) == {}


@pytest.mark.parametrize("dies", [True, False])
async def test_a_transaction(house: House, monkeypatch: pytest.MonkeyPatch, dies: bool) -> None:
    """Part 4, 4.4.2: it counts once that is committed, at the next owner too; rolled back nothing of it does."""
    if dies:
        monkeypatch.setattr(partitions, "frames", lambda *_: ())
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=True)
    await link.attach(queue_id, messages=5)
    await link.until(lambda: link.uids)
    for number, step in enumerate((pb.TransactionStep.ABORT, pb.TransactionStep.COMPLETE), 1):
        raw = added.written({Symbol("in"): number})
        settle = pb.Settle(
            queue_id=queue_id, outcome=pb.RELEASE, uids=link.uids[-1:], annotations=raw, consumer=1, transaction=number
        )
        steps = [pb.TransactionStep(transaction=number, step=each) for each in (pb.TransactionStep.PREPARE, step)]
        await link.send(settles=[settle], transactions=steps)
        await link.until(lambda: any(number in frame.completed for frame in link.frames))  # noqa: B023
    await link.until(lambda: len(link.uids) == 2)
    assert annotations(link) == {"in": 2}
    await link.ready(queue_id, 1)
    await link.close()
    await another_owner(house)
    link = await house.link(origin=1001)
    await link.attach(queue_id)
    await link.until(lambda: link.uids)
    assert annotations(link) == {"in": 2}


async def test_a_transaction_that_says_too_much(house: House) -> None:
    """It is not prepared, and says why; what it was to settle is its consumer's as before."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=True)
    await link.attach(queue_id, messages=5)
    await link.until(lambda: link.uids)
    await modify(link, queue_id, a="x" * (added.MOST - 100))
    await link.until(lambda: len(link.uids) == 2)
    raw = added.written({Symbol("b"): "y" * 100})
    settle = pb.Settle(queue_id=queue_id, uids=link.uids[-1:], outcome=pb.RELEASE, annotations=raw, transaction=9)
    prepare = pb.TransactionStep(transaction=9, step=pb.TransactionStep.PREPARE)
    await link.send(settles=[settle], transactions=[prepare])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    [prepared] = [each for frame in link.frames for each in frame.prepared]
    assert prepared.reason == pb.OTHER
    assert "may gather" in prepared.text
    await modify(link, queue_id, a="less")
    await link.until(lambda: len(link.uids) == 3)
    assert annotations(link) == {"a": "less"}


async def test_a_dead_letter(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The annotations belong to the message: its dead letter has them, also one that the next owner sends."""
    monkeypatch.setattr(partitions, "frames", lambda *_: ())
    parked = await house.declare("parked", max_length=1, overflow="reject-publish")
    to_parked = {"dead_letter_exchange": "", "dead_letter_routing_key": "parked"}
    queue_id = await house.declare("q", durable=True, delivery_limit=2, **to_parked)
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=True)
    await link.publish(parked, [b"in the way"])
    await link.attach(queue_id, messages=5)
    await link.until(lambda: link.uids)
    await modify(link, queue_id, why="late")
    await link.until(lambda: len(link.uids) == 2)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.REJECT, uids=link.uids[-1:])])
    assert await link.ready(queue_id, 1) == 0
    await link.close()
    await another_owner(house)
    link = await house.link(origin=1001)
    await link.attach(queue_id)
    await link.until(lambda: link.uids)
    assert annotations(link) == {"why": "late"}
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.REJECT, uids=link.uids[-1:])])
    await link.attach(parked, 2)
    await link.until(lambda: len(link.uids) == 2)
    assert annotations(link) == {"why": "late"}
    assert "x-death" in AMQP_0_9.headers(link.properties[-1])
    live = house.store._engine._live
    await link.until(lambda: not live.batches)


async def test_what_is_noted_of_what_is_gone(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A next owner that finds a note without its message drops it."""
    monkeypatch.setattr(partitions, "frames", lambda *_: ())
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=True)
    await link.attach(queue_id)
    await link.until(lambda: link.uids)
    await modify(link, queue_id, why="late")
    await link.until(lambda: len(link.uids) == 2)
    queue = house.queues["queue-1"]._host.registry.queues[queue_id]
    queue._entries.annotated = None  # it dies before it has dropped the note
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids[-1:])])
    live = house.store._engine._live
    await link.until(lambda: len(live.batches) == 1)
    await link.close()
    await another_owner(house)
    await (await house.link(origin=1001)).until(lambda: not live.batches)


async def test_not_for_a_consumer_that_comes_again(house: House) -> None:
    """It says to the next owner what is not for it; others get that."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"1", b"2"], persistent=True)
    await link.attach(queue_id, messages=5)
    await link.until(lambda: len(link.uids) == 2)
    await modify(link, queue_id, again=False)
    refused = link.uids[-1]
    await link.ready(queue_id, 1)
    await another_owner(house)
    await link.close()
    link = await house.link(origin=1000)
    await link.attach(queue_id, 1, again=True, not_for=[refused])
    await link.until(lambda: link.uids)
    assert await link.ready(queue_id, 2) == 1
    assert refused not in link.uids
    await link.attach(queue_id, 2)
    await link.until(lambda: refused in link.uids)
    assert [run.consumer for run in link.runs] == [1, 2]


async def test_not_for_a_consumer_that_may_not_come(house: House) -> None:
    """Nothing is kept of what it says."""
    queue_id = await house.declare("q")
    link = await house.link()
    await link.publish(queue_id, [b"1"])
    await link.attach(queue_id, 1, exclusive=True)
    await link.attach(queue_id, 2, not_for=[5, 6])
    await link.until(lambda: sum(len(frame.attached) for frame in link.frames) == 2)
    queue = house.queues["queue-1"]._host.registry.queues[queue_id]
    assert queue._entries.not_for is None


@pytest.mark.parametrize("of", ["annotations", "messages"])
async def test_too_much(house: House, monkeypatch: pytest.MonkeyPatch, of: str) -> None:
    """Its consumer is cancelled, and told why; the messages are others'."""
    monkeypatch.setattr(not_for, "MOST", 0)
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=True)
    await link.attach(queue_id, messages=5)
    await link.until(lambda: link.uids)
    if of == "annotations":
        await modify(link, queue_id, a="x" * (added.MOST - 100))
        await link.until(lambda: len(link.uids) == 2)
        await modify(link, queue_id, b="y" * 100)
    else:
        await modify(link, queue_id, again=False)
    await link.until(lambda: any(frame.cancelled for frame in link.frames))
    [cancelled] = [each for frame in link.frames for each in frame.cancelled]
    assert (cancelled.consumer, cancelled.reason) == (1, pb.LIMIT)
    assert ("may gather" if of == "annotations" else "undeliverable here") in cancelled.text
    assert await link.ready(queue_id, 1) == 1


async def test_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of persistent messages in durable queues it is on disk: all processes may end, and hand nothing over."""
    monkeypatch.setattr(partitions, "frames", lambda *_: ())
    for origin, expected in ((1000, {}), (1001, {"why": "1000"}), (1002, {"why": "1001", "x-1000": True})):
        house = House(tmp_path, store_provider="sqlite")
        await house.start()
        queue_id = await house.declare("q", durable=True)
        link = await house.link(origin=origin)
        if not expected:
            await link.publish(queue_id, [b"1"], persistent=True)
        await link.attach(queue_id, messages=1)
        await link.until(lambda: link.uids)  # noqa: B023 - awaited at once
        assert annotations(link).items() >= expected.items()
        await modify(link, queue_id, **{"why": str(origin), f"x-{origin}": True})
        await link.ready(queue_id, 1)
        await link.publish(queue_id, [b"2"], persistent=True)  # what was said before is on disk, too
        await house.stop()


async def test_while_memory_is_short(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Annotations take memory as messages do: who says any then is given no more, and the message is as it was."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"1"], persistent=True)
    await link.attach(queue_id, messages=5)
    await link.until(lambda: link.uids)
    gate = house.queues["queue-1"]._host.gate
    monkeypatch.setattr(gate, "look", lambda *_: False)  # by what is used it would not be short for long
    gate.full = Full(everywhere=True)
    await modify(link, queue_id, why="late")
    await link.until(lambda: any(frame.cancelled for frame in link.frames))
    [cancelled] = [each for frame in link.frames for each in frame.cancelled]
    assert (cancelled.reason, "memory" in cancelled.text) == (pb.LIMIT, True)
    gate.full = NOWHERE
    link = await house.link(origin=1001)
    await link.attach(queue_id)
    await link.until(lambda: link.uids)
    assert annotations(link) == {}
