"""The ledger of a run in which processes were killed, compared with what its clients saw."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pika
import pytest

from tests.support.cluster_load import Load, TransactionalConsumer
from tests.support.filed_ledger import FiledLedger
from tests.support.interop_pika import connected
from tests.support.stack import Stack, running_stack, wait_until

KILLED = ("queue-1", "store", "queue-2", "mgmt")
QUEUES = 3
LOAD_SECONDS = 1.0
FILED_SECONDS = 90.0  # a silent process is taken for dead after 30

# pika leaves the sockets of connections that failed to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.timeout(900),
]


class Account(NamedTuple):
    """What became of the messages of one queue."""

    promised: int
    delivered: int
    done: int
    waiting: int


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One that files twice in a second."""
    with running_stack(tmp_path_factory.mktemp("account") / "data", {"HOPLINE_LEDGER_SECONDS": "0.5"}) as started:
        yield started


def test_ledger_and_clients_agree(stack: Stack, name: str, tmp_path: Path) -> None:
    """After kills under load the audit counts, queue by queue, what clients count: promised, done, waiting, 0 lost."""
    load = Load(stack.address, name, QUEUES, transactional=QUEUES)
    load.start()
    load.wait_for_progress()
    for target in KILLED:
        time.sleep(LOAD_SECONDS)
        stack.wait_until_replaced(target, stack.kill(target))
        load.wait_for_progress()
    load.finish()
    left = leave_some(stack, [producer.queue for producer in load.producers])
    clients = account_of(load, left)
    wait_until_filed(stack, sum(one.promised for one in clients.values()))
    verdict, audited = audit(stack, tmp_path)
    assert (verdict["lost"], verdict["duplicated"], verdict["in_flight"]) == (0, 0, 0)
    # The last quarter of a second of a killed process is not on record, and the record says so.
    assert (verdict["gaps"], verdict["whole"]) == (2, False)
    assert verdict["unknown"] < verdict["promised"] / 2
    assert audited == clients


def leave_some(stack: Stack, queues: list[str]) -> dict[str, int]:
    """Publishes to queues without consumers; gives how many messages are in each."""
    left = {}
    with connected(stack.address) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for number, queue in enumerate(queues, 1):
            for _ in range(10 * number):
                channel.basic_publish("", queue, b"x", pika.BasicProperties(delivery_mode=2), mandatory=True)
            left[queue] = channel.queue_declare(queue, passive=True).method.message_count
    return left


def account_of(load: Load, left: dict[str, int]) -> dict[str, Account]:
    """The clients' side, which must be sound by itself."""
    assert load.lost() == []
    assert load.broken_promises() == []
    found = {}
    for producer, consumer in zip(load.producers, load.consumers, strict=True):
        assert isinstance(consumer, TransactionalConsumer)
        assert left[producer.queue] == 10 * (len(found) + 1)
        waiting = left[producer.queue]
        promised, delivered = len(producer.confirmed) + waiting, len(consumer.delivered)
        found[producer.queue] = Account(promised, delivered, len(consumer.committed), waiting)
    return found


def wait_until_filed(stack: Stack, confirmed: int) -> None:
    """Returns when all confirms are on file, and the killed process has been missed."""
    ledger = FiledLedger(stack.data)
    wait_until(lambda: len(ledger.rows("gaps")) >= 2, FILED_SECONDS, "gaps of both queue processes")

    def counted() -> int:
        return sum(row["count"] for row in ledger.rows("stages") if row["stage"] == "confirmed")

    wait_until(lambda: counted() >= confirmed, FILED_SECONDS, "confirms on file")


def audit(stack: Stack, folder: Path) -> tuple[dict[str, Any], dict[str, Account]]:
    """The ledger's side, by the command line: the verdict, and what became of the messages of each queue.

    What may have been settled in a gap counts as done: it is neither lost nor waiting, so that nothing else is left.
    """
    hopline = str(Path(sys.executable).with_name("hopline"))
    command = [hopline, "analyse", "audit", "--out", str(folder), "--memory", "1g", "--option", "grace=0"]
    subprocess.run(command, env=stack.command_environment(), check=True, timeout=600, stdout=subprocess.DEVNULL)
    fates, (verdict,) = (json.loads((folder / f"audit/{name}.json").read_text()) for name in ("fates", "verdict"))
    sent = sent_to_consumers(stack)
    of: dict[str, Counter[str]] = defaultdict(Counter)
    for row in fates:
        assert row["origin"] == "confirmed"
        of[row["queue"]][row["fate"]] += row["messages"]
    found = {}
    for queue, counts in of.items():
        done = counts["settled"] + counts["unknown"]
        found[queue] = Account(counts.total(), sent[queue], done, counts["waiting"])
    return verdict, found


def sent_to_consumers(stack: Stack) -> Counter[str]:
    """How many messages of each queue gateways have sent to consumers, however often."""
    uids: dict[str, set[int]] = defaultdict(set)
    for row in FiledLedger(stack.data).rows("stages"):
        if row["stage"] == "sent":
            uids[row["queue"]].update(uid for one in row["uids"] for uid in range(one["first"], one["last"] + 1))
    return Counter({queue: len(sent) for queue, sent in uids.items()})
