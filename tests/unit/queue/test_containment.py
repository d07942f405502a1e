"""One queue's, one consumer's, one request's fault takes nothing else with it: no link, no timer, no process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from services.common.topology.slots import SlotName
from services.queue.dead_letters import office as dead_letter_office
from services.queue.dead_letters.office import DeadLetterOffice
from services.queue.machine.backlog import Backlog
from services.queue.machine.dead_letter import rewrite
from services.queue.machine.giving_back import GivingBack
from services.queue.machine.picking import Picking
from services.queue.machine.queue import Queue
from services.queue.machine.transacted import Transacted
from services.queue.partitions.partition import Partition
from services.queue.partitions.recovery import Recovery
from services.queue.partitions.registry import Registry
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink


@pytest.fixture(autouse=True)
def told() -> Iterator[list[Any]]:
    """What the log says."""
    with capture_logs() as logged:
        yield logged


def _errors(told: list[Any]) -> set[str]:
    assert all(each["do"] for each in told if each["log_level"] == "error")
    return {each["what"] for each in told if each["log_level"] == "error"}


def _break(
    monkeypatch: pytest.MonkeyPatch, method: str, part: type[Queue | Backlog | Transacted | GivingBack] = Queue
) -> None:
    """From now on `method` of queues called `faulty`, or of such a part of them, fails."""
    works = getattr(part, method)

    def fails(self: Any, *args: Any, **more: Any) -> Any:
        whole = self._claims if isinstance(self, GivingBack) else self
        options = whole.options if isinstance(whole, Queue) else whole._entries.options
        if options.name == "faulty":
            raise ZeroDivisionError(method)
        return works(self, *args, **more)

    monkeypatch.setattr(part, method, fails)


async def _two(house: House, **more: Any) -> tuple[int, int]:
    return await house.declare("faulty", **more), await house.declare("good", **more)


async def test_a_queue_that_fails_refuses(house: House, monkeypatch: pytest.MonkeyPatch, told: list[Any]) -> None:
    """Of a batch for two queues, one of which fails, the other has its copy, and the publisher hears which is not."""
    faulty, good = await _two(house, durable=True)
    _break(monkeypatch, "publish")
    link = await house.link()
    for queues in ([faulty, good], [good, faulty]):
        await link.publish(queues, [b"m"], persistent=True)
    assert link.refusals() == [(0, 1, pb.OTHER)] * 2
    assert await link.ready(good, 1) == 2
    assert _errors(told) == {"taking messages into a queue"}


@pytest.mark.parametrize("method", ["attach", "credit", "get", "purge", "settle", "detach"])
async def test_a_part_of_a_frame_fails(
    house: House, monkeypatch: pytest.MonkeyPatch, told: list[Any], method: str
) -> None:
    """All other parts of the frame are carried out, on the same stream; the client of the failed one gets the error."""
    faulty, good = await _two(house)
    link = await house.link()
    await link.attach(good, 2)
    if method in ("credit", "detach", "settle"):
        await link.attach(faulty, 1)
        await link.publish(faulty, [b"held"])
        await link.until(lambda: link.uids)
    _break(monkeypatch, method, Picking if method == "purge" else Queue)
    await link.send(**_frame(link, faulty, good, method))
    await link.until(lambda: b"after" in link.bodies)
    assert await link.ready(good, 9) == 0
    assert [number for number in link.done() if number][-1] == link._sequence
    assert _errors(told)
    heard = {
        "attach": any(each.reason == pb.OTHER for frame in link.frames for each in frame.attached),
        "credit": any(each.reason == pb.OTHER for frame in link.frames for each in frame.cancelled),
        "detach": any(1 in frame.detached for frame in link.frames),
        "settle": True,
    }
    replied = any(each.reason == pb.OTHER for frame in link.frames for each in frame.replies)
    assert heard.get(method, replied)


def _frame(link: RawLink, faulty: int, good: int, method: str) -> dict[str, Any]:
    parts: dict[str, dict[str, Any]] = {
        "attach": {"attaches": [pb.AttachConsumer(consumer=1, queue_id=faulty, messages=1, bytes=1)]},
        "credit": {"credits": [pb.Credit(consumer=1, messages=1, bytes=1)]},
        "settle": {"settles": [pb.Settle(queue_id=faulty, uids=list(link.uids))]},
        "get": {"requests": [pb.QueueRequest(id=1, get=pb.GetRequest(queue_id=faulty))]},
        "purge": {"requests": [pb.QueueRequest(id=1, purge=pb.PurgeRequest(queue_id=faulty))]},
        "detach": {"detaches": [1]},
    }
    return parts[method] | {"publishes": [link.batch(good, [b"after"])]}


@pytest.mark.parametrize("method", ["attach", "credit"])
async def test_a_single_active_consumer_that_fails(house: House, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """The next one gets what waits, without another word."""
    faulty, good = await _two(house, single_active_consumer=True)
    link = await house.link()
    await link.attach(faulty, 1, messages=1)
    await link.publish(faulty, [b"1", b"2"])
    await link.attach(faulty, 2)
    await link.until(lambda: link.bodies == [b"1"])
    _break(monkeypatch, method)
    await link.send(**_frame(link, faulty, good, method))
    await link.until(lambda: link.bodies == [b"1", b"2"])
    assert [run.consumer for run in link.runs] == [1, 2]


async def test_a_transaction_that_fails(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot be prepared is refused; another on the same stream is carried out."""
    faulty, good = await _two(house)
    _break(monkeypatch, "reserve", Transacted)
    link = await house.link()
    for transaction, queue_id in ((1 << 40, faulty), (2 << 40, good)):
        step = pb.TransactionStep(transaction=transaction, step=pb.TransactionStep.PREPARE)
        await link.send(publishes=[link.batch(queue_id, [b"m"], transaction=transaction)], transactions=[step])
    await link.until(lambda: sum(len(frame.prepared) for frame in link.frames) == 2)
    assert [each.reason for frame in link.frames for each in frame.prepared] == [pb.OTHER, pb.NONE]


async def test_a_transaction_that_has_lost_a_batch(house: House) -> None:
    """One of whose batches cannot be read is not prepared, as if that had never been: nothing of it is committed."""
    queue_id = await house.declare("q", durable=True)
    link, number = await house.link(), 1 << 40
    whole = link.batch(queue_id, [b"1"], transaction=number, persistent=True)
    broken = pb.PublishBatch.FromString(link.batch(queue_id, [b"2"], transaction=number, persistent=True))
    broken.ClearField("runs")  # there is a message, and not a word on it
    steps = [pb.TransactionStep(transaction=number, step=pb.TransactionStep.PREPARE)]
    await link.send(publishes=[whole, broken.SerializeToString()], transactions=steps)
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    [prepared] = [each for frame in link.frames for each in frame.prepared]
    assert (prepared.reason, prepared.parts) == (pb.OTHER, 0)
    assert prepared.text
    assert await link.ready(queue_id, 1) == 0
    assert house.queues["queue-1"]._host.account.used == 0


async def test_what_is_decided_is_carried_out(house: House, monkeypatch: pytest.MonkeyPatch, told: list[Any]) -> None:
    """When one part of a committed transaction fails, the others are done."""
    faulty, good = await _two(house)
    link = await house.link()
    batches = [link.batch(queue_id, [b"m"], transaction=1 << 40) for queue_id in (faulty, good)]
    _break(monkeypatch, "publish")
    steps = [pb.TransactionStep(transaction=1 << 40, step=step)
             for step in (pb.TransactionStep.PREPARE, pb.TransactionStep.COMPLETE)]  # fmt: skip
    await link.send(publishes=batches, transactions=steps)
    await link.until(lambda: any(frame.completed for frame in link.frames))
    assert await link.ready(good, 1) == 1
    assert _errors(told) == {"publishing of a transaction"}


async def test_a_link_that_ends(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a gateway held of other queues is given back, though one queue fails."""
    faulty, good = await _two(house)
    first, second = await house.link(), await house.link(origin=1001)
    for handle, queue_id in enumerate((faulty, good), 1):
        await first.attach(queue_id, handle)
        await first.publish(queue_id, [b"held"])
    await first.until(lambda: len(first.uids) == 2)
    _break(monkeypatch, "detach")
    _break(monkeypatch, "release_held_by", GivingBack)
    await first.close()
    await second.attach(good)
    await second.until(lambda: second.uids)


async def test_a_queue_that_fails_by_the_clock(house: House, monkeypatch: pytest.MonkeyPatch, told: list[Any]) -> None:
    """The messages of others expire, and it is not tried at every tick."""
    faulty, good = await _two(house, message_ttl=1, dead_letter_exchange="", dead_letter_routing_key="parked")
    parked = await house.declare("parked")
    _break(monkeypatch, "expire", Backlog)
    _break(monkeypatch, "_is_behind", Backlog)
    link = await house.link()
    await link.attach(parked)
    for _ in range(3):
        await link.publish(faulty, [b"stays"])
        await link.publish(good, [b"goes"])
    await link.until(lambda: len(link.bodies) == 3)
    assert set(link.bodies) == {b"goes"}
    assert "what a queue does by the clock" in _errors(told)
    assert len([each for each in told if each["log_level"] == "error"]) < 20


async def test_a_letter_whose_way_cannot_be_described(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on as it was, and the others as ever."""

    def fails(letter: Any) -> Any:
        if letter.entry.message.body == b"odd":
            raise ZeroDivisionError
        return rewrite(letter)

    monkeypatch.setattr(dead_letter_office, "rewrite", fails)
    source = await house.declare("source", message_ttl=0, dead_letter_exchange="", dead_letter_routing_key="parked")
    parked = await house.declare("parked")
    link = await house.link()
    await link.attach(parked)
    await link.publish(source, [b"1", b"odd", b"2"])
    await link.until(lambda: len(link.bodies) == 3)
    assert sorted(link.bodies) == [b"1", b"2", b"odd"]


async def test_letters_that_cannot_be_sent_hold_up_no_other(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stay where they are, and go when they can."""
    publish, odd = DeadLetterOffice._publish, [b"odd"]

    def fails(self: DeadLetterOffice, addressed: Any) -> None:
        if odd and any(letter.letter.entry.message.body in odd for letter, _ in addressed):
            raise ZeroDivisionError
        publish(self, addressed)

    monkeypatch.setattr(DeadLetterOffice, "_publish", fails)
    letters = {"message_ttl": 0, "dead_letter_exchange": "", "dead_letter_routing_key": "parked"}
    source, other = await house.declare("source", **letters), await house.declare("other", **letters)
    parked = await house.declare("parked")
    link = await house.link()
    await link.attach(parked)
    await link.publish(source, [b"odd"])
    await link.publish(other, [b"1"])
    await link.until(lambda: b"1" in link.bodies)
    assert b"odd" not in link.bodies
    odd.clear()
    await link.until(lambda: b"odd" in link.bodies)


async def test_a_queue_that_cannot_be_served(house: House, monkeypatch: pytest.MonkeyPatch, told: list[Any]) -> None:
    """Publishers and consumers are told so, it can be deleted, and others are served."""
    options = Registry.options

    def fails(self: Registry, definition: Any) -> Any:
        if definition.name == "faulty":
            raise KeyError("no such queue type")
        return options(self, definition)

    monkeypatch.setattr(Registry, "options", fails)
    faulty, good = await _two(house)
    link = await house.link()
    await link.publish([faulty, good], [b"m"])
    assert link.refusals() == [(0, 1, pb.OTHER)]
    assert (await link.attach(faulty)).reason == pb.OTHER
    assert (await link.request(1, get=pb.GetRequest(queue_id=faulty))).reason == pb.OTHER
    assert (await link.request(2, delete=pb.DeleteRequest(queue_id=faulty))).reason == pb.NONE
    await link.until(lambda: SlotName("/", "faulty") not in house.topology.by_name)
    assert await link.ready(good, 3) == 1
    assert "opening a queue" in _errors(told)


async def test_a_batch_that_cannot_be_read_back(house: House, monkeypatch: pytest.MonkeyPatch, told: list[Any]) -> None:
    """The others of the partition are served by its next owner; it is named in the log, and stays on disk."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    for body in (b"1", b"odd", b"2"):
        await link.publish(queue_id, [body], persistent=True)
    add = Recovery.add

    def fails(self: Recovery, batch: Any, contents: Any) -> None:
        if b"odd" in batch.columns:
            raise ZeroDivisionError
        add(self, batch, contents)

    monkeypatch.setattr(Recovery, "add", fails)
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-2")
    later = await house.link("queue-2", origin=1001)
    await later.attach(queue_id)
    await later.until(lambda: len(later.bodies) == 2)
    assert later.bodies == [b"1", b"2"]
    assert "reading a batch of the journal" in _errors(told)


async def test_a_partition_that_cannot_be_served_at_first(
    house: House, monkeypatch: pytest.MonkeyPatch, told: list[Any]
) -> None:
    """It is tried again, with all that was read back: what is for it would wait as long as the process lives."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    await link.publish(queue_id, [b"m"], persistent=True)
    await house.queues.pop("queue-1").stop()
    serve, failed = Registry.serve, set[int]()

    def fails_once(self: Registry, partition: Partition) -> None:
        if partition.number not in failed:
            failed.add(partition.number)
            raise ZeroDivisionError
        serve(self, partition)

    monkeypatch.setattr(Registry, "serve", fails_once)
    await house.start_queue("queue-1")
    again = await house.link()
    assert await again.ready(queue_id, 1) == 1
    assert _errors(told) == {"taking a partition over"}
