"""What a stream remembers from one batch to the next, in its checkpoint: tables numbered by batch.

A batch reads what the one before left and leaves its own; done again after a crash it does the same again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark.ledger.files import LedgerFolder, place

_KEPT = 2  # batches
_SMALL = "table.parquet"


@dataclass(frozen=True, slots=True)
class State:
    """Tables under `<checkpoint>/state`."""

    spark: SparkSession
    checkpoint: str

    def read(self, name: str, batch: int, schema: pa.Schema, *, later: bool = False) -> pa.Table:
        """The small table that a batch left; nothing before the first. `later`: older releases leave none."""
        if batch < 0:
            return schema.empty_table()
        there = self._place(name, batch)
        path = f"{there.path}/{_SMALL}"
        if later and there.system.get_file_info(path).type == fs.FileType.NotFound:
            return schema.empty_table()
        return pq.read_table(path, filesystem=there.system, schema=schema)

    def write(self, name: str, batch: int, table: pa.Table) -> None:
        """Leaves a small table: without Spark, which takes longer to begin than such a table to be written."""
        there = self._place(name, batch)
        there.system.create_dir(there.path, recursive=True)
        pq.write_table(table, f"{there.path}/{_SMALL}", filesystem=there.system)

    def read_large(self, name: str, batch: int, schema: StructType) -> DataFrame:
        """The table of any size that a batch left; nothing before the first."""
        if batch < 0:
            return self.spark.createDataFrame([], schema)
        return self.spark.read.schema(schema).parquet(self._uri(name, batch))

    def folder(self, name: str, batch: int) -> str:
        """Where partitions of a table of any size are to be left; what another try left there is gone."""
        there = self._place(name, batch)
        if there.system.get_file_info(there.path).type != fs.FileType.NotFound:
            there.system.delete_dir(there.path)
        there.system.create_dir(there.path, recursive=True)
        return self._uri(name, batch)

    def size(self, name: str, batch: int) -> int:
        """How many bytes a batch left; 0 before the first."""
        there = self._place(name, batch)
        files = there.system.get_file_info(fs.FileSelector(there.path, allow_not_found=True))
        return sum(info.size or 0 for info in files)

    def forget(self, before: int) -> None:
        """Removes what no batch will ask for any more."""
        top = place(f"{self.checkpoint}/state")
        for info in top.system.get_file_info(fs.FileSelector(top.path, recursive=True, allow_not_found=True)):
            found = re.fullmatch(r"batch=(\d+)", info.base_name)
            if found and int(found[1]) <= before - _KEPT:
                top.system.delete_dir(info.path)

    def _uri(self, name: str, batch: int) -> str:
        there = self._place(name, batch)
        return there.uri(there.path)

    def _place(self, name: str, batch: int) -> LedgerFolder:
        return place(f"{self.checkpoint}/state/{name}/batch={batch}")
