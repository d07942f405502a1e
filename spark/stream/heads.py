"""Up to which row the files of an hour have been read, of each instance: what mgmt has merged meanwhile has these rows,
and those of files that were gone before they could be read. Rows of an instance are filed in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.ledger.files import LedgerFolder

HEADS = pa.schema([("hour", pa.string()), ("instance", pa.string()), ("row", pa.int64())])
KEYS = ("hour", "instance")
_THREADS = 8


def heads(folder: LedgerFolder, paths: Iterable[str]) -> pa.Table:
    """Of these files. Those that are damaged tell nothing: whoever reads them finds out."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return pa.concat_tables([HEADS.empty_table(), *pool.map(lambda path: _of_file(folder, path), paths)])


def merged(folder: LedgerFolder, hour: str) -> list[str]:
    """The files of an hour's folder that mgmt has put together of others."""
    infos = folder.system.get_file_info(fs.FileSelector(hour, allow_not_found=True))
    return sorted(info.path for info in infos if info.base_name.startswith("hour-"))


def after(stages: DataFrame, hour: str, known: pa.Table) -> DataFrame:
    """The rows of an hour that come after the heads that are known."""
    of_hour = known.filter(pc.equal(known["hour"], hour)).select(["instance", "row"])
    head = stages.sparkSession.createDataFrame(of_hour.rename_columns(["instance", "head"]))
    late = stages.join(F.broadcast(head), "instance", "left").where(F.col("row") > F.coalesce("head", F.lit(0)))
    return late.select(*stages.columns)


def hour_of(path: str) -> str:
    """The folder of a file."""
    return path.rpartition("/")[0]


def _of_file(folder: LedgerFolder, path: str) -> pa.Table:
    try:
        rows = pq.read_table(path, columns=["instance", "row"], filesystem=folder.system, partitioning=None)
    except (pa.ArrowException, OSError):
        return HEADS.empty_table()
    found = rows.group_by("instance").aggregate([("row", "max")])
    columns = [pa.array([hour_of(path)] * len(found), pa.string()), found["instance"], found["row_max"]]
    return pa.table(columns, HEADS.names).cast(HEADS)
