"""The ledger of a whole stack while parts of it are killed: every message is on file, every stage of it, once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.filed_ledger import FiledLedger
from tests.support.stack import Stack, running_stack, wait_until

SETTINGS = {"HOPLINE_LEDGER_SECONDS": "0.5"}
WHOLE = ["received", "routed", "enqueued", "persisted", "confirmed", "delivered", "sent", "settled accepted"]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One that files twice in a second."""
    with running_stack(tmp_path_factory.mktemp("ledger") / "data", SETTINGS) as started:
        yield started


@contextmanager
def connected(stack: Stack) -> Iterator[BlockingChannel]:
    connection = pika.BlockingConnection(pika.URLParameters(stack.address.url()))
    channel = connection.channel()
    channel.confirm_delivery()
    try:
        yield channel
    finally:
        connection.close()


def publish(channel: BlockingChannel, queue: str, ids: list[str]) -> None:
    for each in ids:
        properties = pika.BasicProperties(message_id=each, delivery_mode=2)
        channel.basic_publish("", queue, b"x", properties)


def consume(channel: BlockingChannel, queue: str, count: int) -> None:
    for number, (method, _, _) in enumerate(channel.consume(queue, inactivity_timeout=20), 1):
        assert method, "not all messages came"
        channel.basic_ack(method.delivery_tag)
        if number == count:
            break
    channel.cancel()


def ids_of(name: str, count: int) -> list[str]:
    return [f"{name}-{number}" for number in range(count)]


def wait_until_filed(ledger: FiledLedger, ids: list[str], last: Sequence[str] = WHOLE) -> dict[str, list[str]]:
    """The ways of messages, when all of them have come to these stages."""

    def are_filed() -> bool:
        found = ledger.ways(ids)
        return len(found) == len(ids) and all(set(last) <= set(way) for way in found.values())

    wait_until(are_filed, 40, "whole ways on file")
    return ledger.ways(ids)


def test_filing_survives_kill_9(stack: Stack, name: str) -> None:
    """mgmt is killed again and again while it files: every stage of every message is on file, and no row twice."""
    ids = ids_of(name, 200)
    with connected(stack) as channel:
        channel.queue_declare(name, durable=True)
        for start in range(0, 200, 50):
            publish(channel, name, ids[start : start + 50])
            stack.wait_until_replaced("mgmt", stack.kill("mgmt"))
        consume(channel, name, 200)
    ledger = FiledLedger(stack.data)
    ways = wait_until_filed(ledger, ids)
    assert {tuple(sorted(way)) for way in ways.values()} == {tuple(sorted(WHOLE))}
    assert ledger.doubled() == []
    assert ledger.rows("gaps") == []


def test_the_bus_may_go_and_come_back(stack: Stack, name: str) -> None:
    """While NATS is killed and started again no client waits, and afterwards nothing is missing from the files."""
    ids = ids_of(name, 100)
    with connected(stack) as channel:
        channel.queue_declare(name, durable=True)
        publish(channel, name, ids[:50])
        pid = stack.kill("nats")
        publish(channel, name, ids[50:])
        consume(channel, name, 100)
    stack.wait_until_replaced("nats", pid)
    ledger = FiledLedger(stack.data)
    ways = wait_until_filed(ledger, ids)
    assert {tuple(sorted(way)) for way in ways.values()} == {tuple(sorted(WHOLE))}
    assert ledger.doubled() == []
    assert ledger.rows("gaps") == []


def test_failing_over_to_another_owner_is_on_record(stack: Stack, name: str) -> None:
    """After kill -9 of the owner, waiting messages are recovered in a later epoch by another instance, and go on."""
    ids, ledger = ids_of(name, 10), FiledLedger(stack.data)
    with connected(stack) as channel:
        channel.queue_declare(name, durable=True)
        publish(channel, name, ids)
    wait_until_filed(ledger, ids, ["confirmed", "persisted"])
    owner = next(row["instance"] for row in ledger.rows("stages") if (row["stage"], row["queue"]) == ("enqueued", name))
    process = owner.rpartition("-")[0]
    stack.wait_until_replaced(process, stack.kill(process))
    with connected(stack) as channel:
        consume(channel, name, 10)
    ways = wait_until_filed(ledger, ids)
    expected = [*WHOLE[:5], "recovered journal", *WHOLE[5:]]
    assert list(ways.values()) == [expected] * 10
    told = [row for row in ledger.rows("stages") if row["queue"] == name and row["service"] == "queue"]
    epochs = {stage: {row["epoch"] for row in told if row["stage"] == stage} for stage in ("enqueued", "recovered")}
    assert max(epochs["enqueued"]) < min(epochs["recovered"])
    assert owner not in {row["instance"] for row in told if row["stage"] == "settled"}


def test_a_stop_files_everything(tmp_path: Path, name: str) -> None:
    """A stack that was stopped has nothing left to file that the next start does not file."""
    with running_stack(tmp_path / "data", SETTINGS) as stack:
        ids = ids_of(name, 20)
        with connected(stack) as channel:
            channel.queue_declare(name, durable=True)
            publish(channel, name, ids)
            consume(channel, name, 20)
        stack.stop()
        stack.start()
        ledger = FiledLedger(stack.data)
        ways = wait_until_filed(ledger, ids)
        assert {tuple(sorted(way)) for way in ways.values()} == {tuple(sorted(WHOLE))}
        assert ledger.doubled() == []
        assert ledger.rows("gaps") == []
