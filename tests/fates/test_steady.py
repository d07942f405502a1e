"""What the record says of steady traffic without faults: that nothing was odd, and of each message what became of it.

HOPLINE_TEST_STEADY_SECONDS says for how long nothing happens (120).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from tests.support.fates.judge import disagreements, wrongs
from tests.support.fates.pulse import Pulse
from tests.support.fates.recorded import SETTINGS, Recorded, record_all
from tests.support.fates.told import Fate
from tests.support.fates.traffic import Traffic, count_left
from tests.support.stack import Stack, running_stack

STEADY_SECONDS = float(os.environ.get("HOPLINE_TEST_STEADY_SECONDS", "120"))
WINDOWS = 30  # at least, in which traffic is judged
WINDOW = max(1, min(60, int(STEADY_SECONDS / WINDOWS)))  # seconds
RATE = 300.0

# pika leaves the sockets of connections that failed to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.timeout(STEADY_SECONDS * 1.5 + 300),  # a long one has more to judge
]


class Judged(NamedTuple):
    """What is on record, and what the analyses say of it."""

    steady: Recorded
    audit: dict[str, list[Any]]
    anomalies: list[Any]
    told: Fate
    pulse: Pulse

    def odd(self) -> Iterator[str]:
        """Of the traffic; what the machine did then, on standard output."""
        for row in self.anomalies:
            began: float = row["time"].timestamp()
            if stalls := self.pulse.stood_still(began, began + WINDOW):
                print("the machine stood still:", stalls, row["sentence"])  # noqa: T201 - for who runs it with -s
            else:
                yield row["sentence"]


async def steady(stack: Stack, copy: Path) -> Recorded:
    """Nothing happens."""
    traffic = Traffic("steady", lambda: stack.address, RATE)
    await traffic.start()
    await asyncio.sleep(3)  # until what expires does so all the time
    begun = datetime.now(UTC)
    await asyncio.sleep(STEADY_SECONDS)
    ended = await traffic.stop()
    recorded = await record_all(stack, traffic.truth, begun, ended, copy)
    await count_left(traffic.truth, stack.address)
    return recorded


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Judged:
    """Looked at when the stack is down."""
    folder = tmp_path_factory.mktemp("steady")
    with running_stack(folder / "data", SETTINGS) as stack, Pulse(folder / "pulse").taken() as pulse:
        recorded = asyncio.run(steady(stack, folder / "ledger"))
    spark: SparkSession = request.getfixturevalue("spark")
    anomalies = recorded.analyse(spark, "anomalies", window=WINDOW)["anomalies"]
    audit = recorded.analyse(spark, "audit", grace=0)
    return Judged(recorded, audit, anomalies, Fate(recorded.ledger), pulse)


def test_nothing_is_lost_unknown_or_doubled(judged: Judged) -> None:
    """All that was promised is accounted for."""
    (verdict,) = judged.audit["verdict"]
    counts = {name: verdict[name] for name in ("lost", "lost_transient", "unknown", "duplicated", "gaps")}
    assert counts == dict.fromkeys(counts, 0)
    assert verdict["promised"] > RATE * STEADY_SECONDS / 2


def test_nothing_is_odd(judged: Judged) -> None:
    """There is no anomaly, but where the machine itself stood still; and that it did seldom."""
    assert list(judged.odd()) == []
    assert len(judged.pulse.stalls) < STEADY_SECONDS / 10


def test_every_fate_is_right(judged: Judged) -> None:
    """Look-ups say what the clients saw, and the audit counts the same."""
    assert wrongs(judged.steady.truth, judged.told) == []
    assert disagreements(judged.told, judged.audit["fates"]) == {}
