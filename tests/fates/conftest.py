"""One Spark session for both; what pika leaves behind is nobody's fault here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support.spark_session import quick_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Started when it disturbs no steady traffic any more: the first that asks has its record."""
    with quick_session() as session:
        yield session
