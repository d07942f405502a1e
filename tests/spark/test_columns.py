from __future__ import annotations

import pytest
from pyspark.errors import utils
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def test_where_a_column_is_made(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java is not told which line of Python makes a column: an analysis makes thousands, and each would wait for it."""
    told: list[int] = []
    monkeypatch.setattr(utils, "_enable_debugging_cache", None)  # what the session says is asked once in a process
    monkeypatch.setattr(utils, "_capture_call_site", told.append)
    assert spark.range(3).where(F.col("id") + 1 > 1).count() == 2
    assert told == []
