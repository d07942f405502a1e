"""Starts or joins a Spark session."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import make_archive
from tempfile import mkdtemp

from pyspark.sql import SparkSession

from spark.failure import told_in_a_line
from spark.java import require_java
from spark.master import require_master

_LOG4J = Path(__file__).with_name("log4j2.properties")

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A plan is written down each time that it changes: the usual form takes a tenth of the time of a short job.
    "spark.sql.ui.explainMode": "simple",
    # Or each function of a column asks Java several times, to say which line of Python made it, should it fail.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.adaptive.enabled": "true",
    # A partition is worked on whole, in memory: small ones keep within bounds whatever the size of the ledger.
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # An attribute may be said twice, by its old name and by its new one.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    # A bit that flipped on the disk would be read as another queue or stage, and nothing would tell.
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    # Outputs are read by others: an hour of INT96 timestamps is no good to them.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def build_session(
    master: str | None = None,
    memory: str | None = None,
    settings: Mapping[str, str] | None = None,
    java_options: str = "",
) -> SparkSession:
    """A session on `master` (default: spark-submit's, else all cores of this machine).

    `memory` is the heap of the driver, which on local[*] does all the work; `java_options` are for its Java. Raises
    JavaMissing, MasterMissing, and AnalysisError where Spark does not start.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit: Java runs already
    builder = SparkSession.builder.appName("hopline")
    if not submitted:
        require_java()
        require_master(master or "local")
        builder = builder.master(master or "local[*]")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need the same packages
        builder = builder.config("spark.driver.memory", memory or "2g")
        java = f"-Dlog4j2.configurationFile={_LOG4J.as_uri()} {java_options}".rstrip()
        builder = builder.config("spark.driver.extraJavaOptions", java)
        # The machine's name may not resolve, and a session on this machine needs no other.
        if (master or "local").startswith("local"):
            builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    for name, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(name, value)
    with told_in_a_line():
        session = builder.getOrCreate()
    if not submitted:
        session.sparkContext.addPyFile(_package())
    return session


def _package() -> str:
    """This package as a zip: the executors of the session need its functions."""
    folder = Path(__file__).parent
    return make_archive(f"{mkdtemp()}/spark", "zip", folder.parent, folder.name)
