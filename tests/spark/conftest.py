"""One Spark session for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support.spark_session import quick_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with quick_session() as session:
        yield session
