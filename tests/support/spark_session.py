"""A Spark session for tests: starting one takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from spark.session import build_session
from tests.support.spark_cluster import QUICK

# For a few rows, generating Java and compiling it takes longer than interpreting the plan. Tests on a cluster and those
# of the command line generate it, and those of many rows: see `compiling`.
_SMALL = {
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@contextmanager
def quick_session() -> Iterator[SparkSession]:
    """On two threads of this machine, made for short jobs; stopped in the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", QUICK)
        session = build_session("local[2]", "1g", _SMALL)
    yield session
    session.stop()


def compiling(session: SparkSession) -> SparkSession:
    """A session beside it that generates Java for what it computes of a row."""
    beside = session.newSession()
    beside.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    return beside
