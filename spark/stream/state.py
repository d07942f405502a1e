"""What a stream remembers from one batch to the next, in its checkpoint: tables numbered by batch.

A batch reads what the one before left and leaves its own; done again after a crash it does the same again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark.ledger.files import place

_KEPT = 2  # batches


@dataclass(frozen=True, slots=True)
class State:
    """Tables under `<checkpoint>/state`."""

    spark: SparkSession
    checkpoint: str

    def read(self, name: str, batch: int, schema: StructType) -> DataFrame:
        """The table that a batch left; nothing before the first."""
        if batch < 0:
            return self.spark.createDataFrame([], schema)
        return self.spark.read.schema(schema).parquet(self._uri(name, batch))

    def write(self, name: str, batch: int, table: DataFrame) -> DataFrame:
        """Leaves a small table; gives it as it can be read again, in one partition, that no more is shuffled."""
        self.write_large(name, batch, table.coalesce(1))
        return self.spark.read.schema(table.schema).parquet(self._uri(name, batch)).coalesce(1)

    def write_large(self, name: str, batch: int, table: DataFrame) -> None:
        """Leaves a table of any size."""
        table.write.mode("overwrite").parquet(self._uri(name, batch))

    def forget(self, before: int) -> None:
        """Removes what no batch will ask for any more."""
        top = place(f"{self.checkpoint}/state")
        for info in top.system.get_file_info(fs.FileSelector(top.path, recursive=True, allow_not_found=True)):
            found = re.fullmatch(r"batch=(\d+)", info.base_name)
            if found and int(found[1]) <= before - _KEPT:
                top.system.delete_dir(info.path)

    def _uri(self, name: str, batch: int) -> str:
        top = place(f"{self.checkpoint}/state/{name}/batch={batch}")
        return top.uri(top.path)
