"""Rows kept from one batch to the next: packed by bucket, for Spark handles few large rows faster than many."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark.journeys import BUCKET_BITS
from spark.ledger.files import place
from spark.ranges import Ints, expand

ROW = ("place", "what", "time", "first", "last")


def file_rows(rows: Mapping[str, Ints], folder: str, partition: int) -> None:
    """Files rows of a partition, packed: columns `bucket` and `rows`; doing so again replaces the file."""
    there = place(folder)
    there.system.create_dir(there.path, recursive=True)
    where = f"{there.path}/part-{partition:06}.parquet"
    pq.write_table(_packed(rows), where, filesystem=there.system, compression="zstd", use_dictionary=False)


def all_rows(table: pa.Table) -> dict[str, Ints]:
    """The rows of a table of which some are packed: those have `rows`, and nothing in the other columns."""
    plain, packed = table.filter(table["rows"].is_null()), table["rows"].drop_null().to_pylist()
    parts = [np.stack([plain[name].to_numpy() for name in ROW])]
    parts += [np.frombuffer(some, np.int64).reshape(len(ROW), -1) for some in packed]
    return dict(zip(ROW, np.concatenate(parts, axis=1), strict=True))


def _packed(rows: Mapping[str, Ints]) -> pa.Table:
    """Rows that reach over several buckets are divided."""
    low = rows["first"] >> BUCKET_BITS
    row, bucket = expand(low, (rows["last"] >> BUCKET_BITS) - low + 1)
    divided = {name: rows[name][row] for name in ROW}
    divided["first"] = np.maximum(divided["first"], bucket << BUCKET_BITS)
    divided["last"] = np.minimum(divided["last"], ((bucket + 1) << BUCKET_BITS) - 1)
    order = np.argsort(bucket, kind="stable")
    matrix = np.stack([divided[name][order] for name in ROW])
    buckets, begins = np.unique(bucket[order], return_index=True)
    ends = np.append(begins[1:], len(order))
    packed = [matrix[:, begin:end].tobytes() for begin, end in zip(begins, ends, strict=True)]
    return pa.table({"bucket": pa.array(buckets, pa.int64()), "rows": pa.array(packed, pa.binary())})
