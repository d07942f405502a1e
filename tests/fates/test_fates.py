"""What the record says became of messages is what became of them, while each kind of process is killed, links are cut
and partitions move. The truth is kept by the clients.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from services.common import clock
from services.mgmt.lookup.answers import Answers
from tests.support.fates.allowed import LOST_TRANSIENT, UNKNOWN
from tests.support.fates.faults import Faults
from tests.support.fates.judge import disagreements, lost, wrongs
from tests.support.fates.recorded import SETTINGS, Recorded
from tests.support.fates.told import Fate, of_journey
from tests.support.fates.traffic import Traffic, count_left
from tests.support.fates.truth import Truth
from tests.support.filed_ledger import FiledLedger
from tests.support.interop_proxy import Proxy
from tests.support.stack import Stack, running_stack, wait_until

RATE = 300.0
SILENT_SECONDS = 60.0
SAMPLE = 25  # look-ups by the id, in files
FATES = {
    *("settled", "dead_lettered", "expired", "dropped", "refused", "returned", "rolled_back", "waiting"),
    *(UNKNOWN, LOST_TRANSIENT),
}

# pika leaves the sockets of connections that failed to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.timeout(300),
]


class Outcome(NamedTuple):
    """What was recorded, and what the analyses say of it."""

    disturbed: Recorded
    told: Fate
    audit: dict[str, list[Any]]
    lag: dict[str, list[Any]]


async def disturbed(stack: Stack) -> tuple[Truth, datetime]:
    """Everything happens: first what has mgmt wait anew for those that are silent."""
    async with Proxy.running(stack.address) as proxy:
        traffic = Traffic("disturbed", lambda: proxy.address, RATE)
        await traffic.start()
        begun = datetime.now(UTC)
        faults = Faults(stack, proxy, traffic.truth)
        for service in ("mgmt", "nats", "store", "queue-1", "queue-2"):
            await faults.kill(service)
        await asyncio.sleep(2)  # so that the gateway is not missed at the same time
        await faults.kill("gateway")
        await faults.kill("router")
        await faults.cut()
        await faults.move("queue-1")
        await faults.hold("queue-1")
        await traffic.stop()
        return traffic.truth, begun


def are_missed(stack: Stack) -> bool:
    """Whether the record has noticed which process was killed."""
    return {row["instance"].partition("-")[0] for row in FiledLedger(stack.data).rows("gaps")} >= {"gateway", "queue"}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One that files twice in a second."""
    with running_stack(tmp_path_factory.mktemp("fates") / "data", SETTINGS) as started:
        yield started


@pytest.fixture(scope="module")
def outcome(stack: Stack, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Outcome:
    """Looked at when those that were killed are missed."""
    ledger = tmp_path_factory.mktemp("recorded") / "ledger"
    truth, begun = asyncio.run(disturbed(stack))
    spark: SparkSession = request.getfixturevalue("spark")  # which may start while nothing else happens
    wait_until(lambda: are_missed(stack), SILENT_SECONDS, "word of who was killed")
    shutil.copytree(stack.data / "ledger", ledger)
    asyncio.run(count_left(truth, stack.address))
    loud = Recorded(truth, ledger, begun, datetime.now(UTC))
    return Outcome(loud, Fate(loud.ledger), loud.analyse(spark, "audit", grace=0), loud.analyse(spark, "lag"))


def test_look_ups_say_what_is_true(outcome: Outcome) -> None:
    """Whichever process died, each fate is right, nothing persisted is called lost, and unknown fates name a gap."""
    assert wrongs(outcome.disturbed.truth, outcome.told) == []


def test_there_is_every_fate(outcome: Outcome) -> None:
    """So that none is right only because there was no such message."""
    assert {one.fate for name in outcome.disturbed.truth.messages for one in outcome.told.of(name)} >= FATES


def test_losses_are_named(outcome: Outcome) -> None:
    """Transient messages that are gone from queues without consumers are called lost, and none that is there.

    Others of them are unknown: how many, depends on how far behind the record was when their owner was killed.
    """
    truth, told = outcome.disturbed.truth, outcome.told
    named = {copy for copy in lost(truth, told) if copy[1].endswith("-idle")}
    gone = truth.gone("-idle")
    assert named & gone
    assert not named & truth.left
    assert {(name, one.queue) for name, _ in gone - named for one in told.of(name) if one.fate != UNKNOWN}


def test_the_audit_says_the_same(outcome: Outcome) -> None:
    """Queue by queue, the audit counts each fate as look-ups do, and of faults there are none."""
    assert disagreements(outcome.told, outcome.audit["fates"]) == {}
    (verdict,) = outcome.audit["verdict"]
    assert (verdict["lost"], verdict["whole"]) == (0, False)
    assert verdict["lost_transient"] >= len(lost(outcome.disturbed.truth, outcome.told))
    # Of what was dead-lettered by two owners, the first dead letter may never have come.
    doubled = [row for row in outcome.audit["fates"] if row["duplicate"] and row["fate"] != "dead_lettered"]
    assert sum(row["messages"] for row in doubled) <= len(outcome.disturbed.truth.twice)


def test_lag_says_what_is_left(outcome: Outcome) -> None:
    """Whoever died, the backlog is what clients find in queues that nobody consumes: what went with its owner does not
    count.
    """
    truth = outcome.disturbed.truth
    unread = {name for name, queue in truth.queues.items() if not queue.consumed}
    told = {row["queue"]: row["backlog"] for row in outcome.lag["queues"]}
    assert {queue: told[queue] for queue in unread & told.keys()} == {
        queue: truth.depths[queue] for queue in unread & told.keys()
    }
    assert truth.depths.keys() <= told.keys()


def test_look_ups_in_files(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by their ids in the ledger's files, messages have the same fates."""
    truth, told = outcome.disturbed.truth, outcome.told
    monkeypatch.setattr("services.mgmt.lookup.answers.epoch_ns", lambda: told.now_us * 1000)
    answers = Answers(outcome.disturbed.ledger, clock.monotonic)
    names = sorted(name for name in truth.messages if name in told.uids)
    for name in names[:: len(names) // SAMPLE]:
        (journey,) = answers.trace(name, 1, everything=False, payloads=False, unfiled={}).journeys
        assert list(of_journey(journey)) == told.of(name)
    answers.close()
