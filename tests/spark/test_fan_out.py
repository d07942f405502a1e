from __future__ import annotations

from pyspark.sql import SparkSession

from spark.jobs.fan_out import JOB
from tests.support.told import Ledger, results


def test_amplification(spark: SparkSession) -> None:
    """A publish that goes to three queues is three copies and thrice the bytes; dead letters are not publishes."""
    ledger = Ledger()
    for first in (1, 101):
        ledger.tell("received", 0, first, first + 99, exchange="news", routing_key="eu", bytes=5_000)
        for queue in ("a", "b", "c"):
            ledger.tell("routed", 0, first, first + 99, exchange="news", routing_key="eu", queue=queue)
    ledger.tell("received", 1, 300, 304, exchange="news", routing_key="us", bytes=50)
    ledger.tell("returned", 1, 300, 304, exchange="news", routing_key="us", reason="no_route")
    ledger.tell("routed", 2, 900, 950, service="queue", exchange="dlx", queue="dead")
    found = results(JOB, ledger.inputs(spark))
    publishes = {row["routing_key"]: row for row in found["publishes"]}
    assert publishes.keys() == {"eu", "us"}
    eu, us = publishes["eu"], publishes["us"]
    assert (eu["messages"], eu["copies"], eu["amplification"], eu["queues"]) == (200, 600, 3.0, 3)
    assert (eu["bytes"], eu["bytes_out"]) == (10_000, 30_000)
    assert (us["copies"], us["amplification"], us["unrouted"]) == (0, 0.0, 5)
    assert {row["queue"]: row["share"] for row in found["bindings"]} == dict.fromkeys("abc", 1 / 3)
