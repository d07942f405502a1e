from __future__ import annotations

from typing import Any

import pytest

from services.common.ledger import stages
from services.common.ledger.encoding import Mixture, Sealed
from services.common.ledger.place import LedgerPlace
from services.common.ledger.recorder import OFF
from services.common.ledger.row_recorder import RowRecorder
from services.common.metrics import each
from services.common.metrics.each import CountedQueues, counted_connections, counted_exchanges
from services.common.metrics.meters import Meters
from services.common.metrics.stages import CountedStages
from services.rpc import ledger_pb2 as ledger

HERE = LedgerPlace("/", exchange="shop", protocol="AMQP 0-9-1", connection="1.1")
QUEUE = LedgerPlace("/", queue="work", partition=3, epoch=1)


def told(meters: Meters) -> dict[tuple[str, ...], float]:
    """What is not 0, by OpenTelemetry's name and labels."""
    found: dict[tuple[str, ...], float] = {}
    for instrument, samples, _ in meters.measured(per_object=True):
        found |= {(instrument.name.removeprefix("hopline."), *labels): value for labels, value in samples if value}
    return found


def zeros(meters: Meters) -> set[tuple[str, ...]]:
    return {
        (instrument.name.removeprefix("hopline."), *labels)
        for instrument, samples, _ in meters.measured()
        for labels, value in samples
        if not value
    }


def test_batches_count_their_messages() -> None:
    """A batch counts as many as it has messages, whether they are a range or a list, by protocol, with their bytes."""
    meters = Meters("gateway", "gateway-1")
    counted = CountedStages(OFF, meters)
    counted.record(ledger.RECEIVED, HERE, range(1000), size=5000)
    counted.record(ledger.RECEIVED, HERE._replace(protocol="AMQP 1.0"), [7, 9], size=20)
    counted.record(ledger.ROUTED, HERE, range(1000))
    counted.record(ledger.ROUTED, HERE, range(1000))
    assert told(meters) == {
        ("messages.received", "AMQP 0-9-1"): 1000,
        ("messages.received", "AMQP 1.0"): 2,
        ("messages.received.size",): 5020,
        ("messages.routed",): 2000,
    }


def test_mixtures_count_their_messages() -> None:
    """So do messages that are each at a place of their own."""
    meters = Meters("gateway", "gateway-1")
    counted = CountedStages(OFF, meters)
    places = [(HERE, "a"), (HERE, "b")]
    counted.record_each(ledger.RECEIVED, Mixture(places, [0, 1, 0], [10, 20, 30]), [1, 2, 3])
    counted.record_each(ledger.RETURNED, Mixture(places, [1]), [2], reason=stages.NO_ROUTE)
    assert told(meters) == {
        ("messages.received", "AMQP 0-9-1"): 3,
        ("messages.received.size",): 60,
        ("messages.returned", "no_route"): 1,
    }


@pytest.mark.parametrize(
    ("stage", "how", "name"),
    [
        (ledger.SETTLED, {"outcome": stages.ACCEPTED}, ("settled", "accepted")),
        (ledger.SETTLED, {"outcome": stages.REJECTED}, ("settled", "rejected")),
        (ledger.REQUEUED, {"reason": stages.CONSUMER_GONE}, ("requeued", "consumer_gone")),
        (ledger.EXPIRED, {"reason": stages.MESSAGE_TTL}, ("expired", "message_ttl")),
        (ledger.DEAD_LETTERED, {"reason": stages.MAXLEN, "successors": range(2)}, ("dead_lettered", "maxlen")),
        (ledger.DROPPED, {"reason": stages.PURGED}, ("dropped", "purged")),
        (ledger.RECOVERED, {"reason": stages.JOURNAL}, ("recovered", "journal")),
        (ledger.ENQUEUED, {}, ("enqueued",)),
        (ledger.PERSISTED, {}, ("persisted",)),
    ],
)
def test_fates_in_a_queue(stage: int, how: dict[str, Any], name: tuple[str, ...]) -> None:
    """Each fate is a counter, with its outcome or its reason; it is told from the start, as 0."""
    meters = Meters("queue", "queue-1-a")
    counted = CountedStages(OFF, meters)
    assert (f"messages.{name[0]}", *name[1:]) in zeros(meters)
    counted.record(stage, QUEUE, [1, 2], **how)
    assert told(meters) == {(f"messages.{name[0]}", *name[1:]): 2}


def test_deliveries_again() -> None:
    """What is delivered again counts as delivered, and as redelivered."""
    meters = Meters("queue", "queue-1-a")
    counted = CountedStages(OFF, meters)
    counted.record(ledger.DELIVERED, QUEUE._replace(attempt=1), range(5))
    counted.record(ledger.DELIVERED, QUEUE._replace(attempt=2), range(3))
    assert told(meters) == {("messages.delivered",): 8, ("messages.redelivered",): 3}


def test_partitions_that_move() -> None:
    """A partition that is given up, or taken over, counts one."""
    meters = Meters("queue", "queue-1-a")
    counted = CountedStages(OFF, meters)
    counted.note(ledger.HANDED_OVER, LedgerPlace(partition=3))
    counted.note(ledger.TAKEN_OVER, LedgerPlace(partition=4))
    counted.note(ledger.TAKEN_OVER, LedgerPlace(partition=5))
    assert told(meters) == {("partitions.handed_over",): 1, ("partitions.taken_over",): 2}


def test_the_ledger_hears_all_of_it() -> None:
    """The recorder behind it gets the same rows as without it."""
    sealed: tuple[list[Sealed], list[Sealed]] = ([], [])
    alone = RowRecorder("queue", "queue-1", sealed[0].append)
    beside = RowRecorder("queue", "queue-1", sealed[1].append)
    for recorder in (alone, CountedStages(beside, Meters("queue", "queue-1"))):
        recorder.record(ledger.DEAD_LETTERED, QUEUE, [1, 2], reason=stages.REJECTED, successors=range(7, 9))
        recorder.record(ledger.SETTLED, QUEUE, [], outcome=stages.ACCEPTED)
        recorder.record_each(ledger.ROUTED, Mixture([(HERE, "a")], [0]), [7])
        recorder.note(ledger.TAKEN_OVER, LedgerPlace(partition=3))
        recorder.identify("amqp-0-9", [7], [b"id"])
    assert (alone.seal(), beside.seal()) == (True, True)
    assert alone.written == beside.written == 3
    assert [len(each.payload) for each in sealed[0]] == [len(each.payload) for each in sealed[1]]


def test_queues_apart() -> None:
    """Each queue has counts of its own where that is wanted, until it is deleted."""
    meters = Meters("queue", "queue-1-a")
    queues = CountedQueues(meters)
    counted = CountedStages(OFF, meters, [queues])
    other = QUEUE._replace(queue="other")
    counted.record(ledger.ENQUEUED, QUEUE, range(4))
    counted.record(ledger.ENQUEUED, other, range(2))
    counted.record(ledger.DELIVERED, QUEUE._replace(connection="1.1", consumer="c", attempt=2), range(3))
    counted.record(ledger.SETTLED, QUEUE, range(2), outcome=stages.REJECTED)
    found = told(meters)
    assert {name: value for name, value in found.items() if name[0].startswith("queue.")} == {
        ("queue.messages.enqueued", "/", "work"): 4,
        ("queue.messages.enqueued", "/", "other"): 2,
        ("queue.messages.delivered", "/", "work"): 3,
        ("queue.messages.redelivered", "/", "work"): 3,
        ("queue.messages.settled", "/", "work", "rejected"): 2,
    }
    assert found["messages.enqueued",] == 6
    queues.forget("/", "work")
    counted.record(ledger.DROPPED, QUEUE, range(9), reason=stages.QUEUE_DELETED)
    assert len(queues) == 1
    assert told(meters)["messages.enqueued",] == 6


def test_memory_does_not_grow_with_messages() -> None:
    """What is kept depends on kinds of fates, and not on queues, connections or messages."""
    counted = CountedStages(OFF, Meters("queue", "queue-1-a"))
    counted.record(ledger.DELIVERED, QUEUE._replace(attempt=1), range(3))
    before = len(counted._counts)
    for number in range(10_000):
        place = LedgerPlace("/", queue=f"queue {number}", connection=str(number), consumer=str(number), attempt=1)
        counted.record(ledger.DELIVERED, place, range(number, number + 3))
    assert len(counted._counts) == before


def apart(meters: Meters, what: str) -> dict[tuple[str, ...], float]:
    return {name[1:]: value for name, value in told(meters).items() if name[0] == what}


def test_exchanges_and_connections_apart() -> None:
    """Each has counts of its own, of batches and of messages that are each at a place of their own, with reasons."""
    meters = Meters("gateway", "gateway-1")
    counted = CountedStages(OFF, meters, [counted_exchanges(meters), counted_connections(meters)])
    audit, second = HERE._replace(exchange="audit"), HERE._replace(connection="1.2")
    counted.record(ledger.RECEIVED, HERE, range(1000), size=5000)
    counted.record(ledger.RECEIVED, second._replace(protocol="AMQP 1.0"), range(3), size=5000)
    counted.record_each(ledger.RECEIVED, Mixture([(HERE, "a"), (audit, "b")], [0, 1, 1], [1, 1, 1]), [1, 2, 3])
    counted.record_each(ledger.RETURNED, Mixture([(audit, "b")], [0]), [2], reason=stages.NO_ROUTE)
    counted.record(ledger.SENT, LedgerPlace("/", queue="work", connection="1.2"), range(7))
    assert apart(meters, "exchange.messages.received") == {("/", "shop"): 1004, ("/", "audit"): 2}
    assert apart(meters, "exchange.messages.returned") == {("/", "audit", "no_route"): 1}
    assert apart(meters, "connection.messages.received") == {("/", "1.1"): 1003, ("/", "1.2"): 3}
    assert apart(meters, "connection.messages.sent") == {("/", "1.2"): 7}
    assert not any(instrument.per_object for instrument, _, _ in meters.measured())


def test_no_more_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after them counts together, and stays so when others are gone: no count ever falls."""
    monkeypatch.setattr(each, "MOST", 2)
    meters = Meters("gateway", "gateway-1")
    exchanges = counted_exchanges(meters)
    counted = CountedStages(OFF, meters, [exchanges])
    for name in ("a", "b", "c", "d", "a"):
        counted.record(ledger.RECEIVED, HERE._replace(exchange=name), range(2))
    found = {("/", "a"): 4, ("/", "b"): 2, ("(others)", "(others)"): 4}
    assert apart(meters, "exchange.messages.received") == found
    exchanges.keep(lambda labels: labels == ("/", "b"))
    counted.record(ledger.RECEIVED, HERE._replace(exchange="c"), range(1))
    found = {("/", "b"): 2, ("/", "c"): 1, ("(others)", "(others)"): 4}
    assert apart(meters, "exchange.messages.received") == found
