"""Makes a table of ids: each message that was received has a message id."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark.generate.batches import Ints
from spark.schema import IDS, STAGE_NAMES, arrow_schema


def ids_table(columns: dict[str, Ints]) -> pa.Table:
    """Of the rows that say that messages were received, in order of their ids."""
    received = columns["stage"] == STAGE_NAMES.index("received")
    first, end, time = (columns[name][received] for name in ("first", "end", "time"))
    count = end - first
    uids = np.repeat(first, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    numbers = pa.array(uids)
    made = {
        "id": pc.binary_join_element_wise("message", numbers.cast(pa.string()), "-"),
        "kind": pa.array(["message_id"] * len(uids)),
        "first_uid": numbers,
        "last_uid": numbers,
        "time": pa.array(np.repeat(time, count), pa.timestamp("us", "UTC")),
    }
    schema = arrow_schema(IDS)
    return pa.table([made[name] for name in schema.names], schema).sort_by("id")
