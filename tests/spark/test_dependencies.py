from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark.generate.files import write
from spark.generate.plan import Plan
from spark.jobs.dependencies import JOB
from spark.registry import job
from spark.run import Sources, run
from tests.support.told import Ledger, read_stages, results


def edge(rows: list[dict[str, Any]], kind: str, source: str, target: str) -> dict[str, Any]:
    (found,) = [row for row in rows if (row["kind"], row["source"], row["target"]) == (kind, source, target)]
    return found


def test_graphs_by_hand(spark: SparkSession) -> None:
    """Applications, exchanges and queues are joined by what went between them, with errors, times and fan-out."""
    ledger = Ledger()
    ledger.journey(1, 90, producer="shop", exchange="orders", queue="bill", consumer="billing")
    ledger.journey(91, 100, producer="shop", exchange="orders", queue="bill", consumer="billing", waits=4.0)
    ledger.tell("routed", 0, 1, 100, client="shop", exchange="orders", queue="ship", partition=2)
    ledger.tell("received", 5, 200, 204, client="shop", exchange="orders")
    ledger.tell("returned", 5, 200, 204, client="shop", exchange="orders", reason="no_route")
    ledger.tell("dead_lettered", 6, 1, 3, queue="bill", partition=1, target="dlx", successors=[(900, 902)])
    found = results(JOB, ledger.inputs(spark))
    published = edge(found["edges"], "publish", "shop", "orders")
    assert (published["messages"], published["errors"]) == (105, 5)
    assert published["fan_out"] == 200 / 105
    assert published["p95_us"] == 200_000
    consumed = edge(found["edges"], "consume", "bill", "billing")
    assert (consumed["messages"], consumed["errors"]) == (100, 3)
    assert consumed["p50_us"] == 110_000
    assert abs(consumed["p95_us"] - 4_010_000) < 80_000
    assert edge(found["edges"], "route", "orders", "ship")["errors"] == 100
    assert edge(found["edges"], "dead_letter", "bill", "dlx")["messages"] == 3
    paths = {(row["producer"], row["exchange"], row["queue"], row["consumer"]): row for row in found["paths"]}
    assert paths["shop", "orders", "bill", "billing"]["messages"] == 100
    assert paths["shop", "orders", "ship", ""]["messages"] == 100
    assert {(row["kind"], row["source"], row["target"]): row["messages"] for row in found["services"]} == {
        ("enqueue", "gateway-1", "queue-1"): 100,
        ("enqueue", "gateway-1", ""): 100,
        ("deliver", "queue-1", "gateway-1"): 100,
    }


def test_generated(spark: SparkSession, tmp_path: Path) -> None:
    """Every edge of a generated ledger has as many messages as its rows say, and paths leave none out."""
    write(Plan(rows=20_000, queues=8, skew=0.5, losses=5), str(tmp_path / "ledger"))
    found = run(spark, job("dependencies"), Sources(str(tmp_path / "ledger")), str(tmp_path / "out")).tables
    expected, routed, through = Counter[tuple[str, str, str]](), Counter[str](), Counter[str]()
    for row in read_stages(tmp_path):
        match row["stage"]:
            case "received":
                expected["publish", row["client"], row["exchange"]] += row["count"]
            case "routed":
                expected["route", row["exchange"], row["queue"]] += row["count"]
                routed[row["queue"]] += row["count"]
            case "sent":
                expected["consume", row["queue"], row["client"]] += row["count"]
            case "dead_lettered":
                expected["dead_letter", row["queue"], row["target"]] += row["count"]
    assert {(row["kind"], row["source"], row["target"]): row["messages"] for row in found["edges"]} == expected
    for row in found["paths"]:
        through[row["queue"]] += row["messages"]
    assert through == routed
