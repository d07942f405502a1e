"""How many windows of bursty traffic without faults pass for odd, and that what is odd of steady traffic still does."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession, Window

from spark.jobs.oddity import Bounds, with_oddity
from tests.support.spark_session import compiling

WINDOWS, EDGES = 240, 20
BOUNDS = Bounds(history=30, least=8, threshold=6.0)


def _bursty(random: np.random.Generator) -> dict[str, np.ndarray]:
    """Messages in each window of an edge, for each kind of traffic."""
    chance, windows = random.random(WINDOWS), np.arange(WINDOWS)
    level = np.zeros(WINDOWS)
    for window in range(1, WINDOWS):
        level[window] = 0.7 * level[window - 1] + random.normal(0, 0.57)
    return {
        "steady": random.poisson(100, WINDOWS),
        "on and off": (chance < 0.15) * random.lognormal(5, 1, WINDOWS).round(),
        "seldom": (chance < 0.03) * random.lognormal(6, 0.5, WINDOWS).round(),
        "swelling": random.poisson(50 * np.exp(level)),
        "ten times as much": random.poisson(np.where(chance < 0.1, 500, 50)),
        "every ten minutes": random.poisson(np.where(windows % 10 == 0, 800, 5)),
        "every hour": random.poisson(np.where(windows % 60 == 30, 3000, 20)),
        "heavy tails": (random.pareto(1.5, WINDOWS) * 20 + 5).round(),
    }


def _odd(spark: SparkSession, edges: dict[str, np.ndarray], bounds: Bounds = BOUNDS) -> list[tuple[str, int]]:
    rows = [(edge, window, float(value)) for edge, values in edges.items() for window, value in enumerate(values)]
    # Of 40,000 windows, each with 300 before it, the interpreter makes minutes of processor time: seconds are enough.
    values = (
        compiling(spark)
        .createDataFrame(rows, "edge string, window int, value double")
        .selectExpr("*", "10.0d as least")
    )
    found = with_oddity(values, Window.partitionBy("edge").orderBy("window"), bounds).where("odd")
    return sorted((row["edge"], row["window"]) for row in found.collect())


# Of 240 windows of an edge; with the median absolute deviation alone they are 0, 36, 7, 5, 23, 23, 4 and 19.
AT_MOST = {
    "steady": 0.0,
    "on and off": 2.0,
    "seldom": 3.0,
    "swelling": 0.5,
    "ten times as much": 2.0,
    "every ten minutes": 2.0,
    "every hour": 2.0,
    "heavy tails": 1.0,
}


def test_bursts(spark: SparkSession) -> None:
    """Bursts are odd once or twice, and are a habit then; steady traffic never is."""
    random = np.random.default_rng(13)
    edges = {f"{kind}/{number}": values for number in range(EDGES) for kind, values in _bursty(random).items()}
    odd = [edge.partition("/")[0] for edge, _ in _odd(spark, edges)]
    assert {kind: odd.count(kind) / EDGES for kind, most in AT_MOST.items() if odd.count(kind) > most * EDGES} == {}


@pytest.mark.parametrize(("value", "times"), [(300, 2), (1000, 2), (0, 2), (110, 0), (60, 0)])
def test_what_is_odd(spark: SparkSession, value: int, times: int) -> None:
    """Three times as much as ever, or nothing at all, is odd wherever it comes, and the third time no news."""
    random = np.random.default_rng(7)
    edges = {f"{number}": random.poisson(100, 60) for number in range(5)}
    at = (20, 50, 55)
    for values in edges.values():
        values[list(at)] = value
    assert _odd(spark, edges) == [(edge, window) for edge in sorted(edges) for window in at[:times]]
