"""What a row says, in one number: a shuffle of few columns takes less time than one of many."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

from spark.ranges import Ints
from spark.schema import REASONS

# From the lowest bit: kind, whether of a copy in a queue, reason, partition + 1, epoch.
_KIND_BITS, _REASON_BITS, _PARTITION_BITS = 6, 6, 24
_COPY = _KIND_BITS
_REASON = _COPY + 1
_PARTITION = _REASON + _REASON_BITS
_EPOCH = _PARTITION + _PARTITION_BITS

_STEP_BITS = 4  # of a moment's time: 16 µs
# Of a moment: 35 years of such steps. Above it are the low 17 bits of an epoch, and its sign: a store that was restored
# goes on at epochs that are higher by multiples of 2^18 and a little, so that moments still grow.
_TIME_BITS = 46
_START = 1_577_836_800_000_000 >> _STEP_BITS  # 2020


def packed_what(kind: Column, copy: Column) -> Column:
    """What a row of `stages` says, as one number."""
    parts = (
        (kind, 0),
        (copy.cast("long"), _COPY),
        (_reason(), _REASON),
        (F.col("partition") + 1, _PARTITION),
        (F.col("epoch"), _EPOCH),
    )
    what = F.lit(0).cast("long")
    for part, bit in parts:
        what = what.bitwiseOR(F.shiftleft(F.coalesce(part.cast("long"), F.lit(0)), bit))
    return what


def unpacked(rows: Mapping[str, Ints]) -> dict[str, Ints]:
    """Rows with `what` taken apart, and with `moment`, which says when something happened to a copy in a queue.

    Moments grow: by epoch of the partition first, for the clocks of owners disagree; then by time.
    """
    what = rows["what"]
    epoch = what >> _EPOCH
    return {
        **rows,
        "kind": what & _mask(_KIND_BITS),
        "copy": what >> _COPY & 1,
        "reason": what >> _REASON & _mask(_REASON_BITS),
        "partition": (what >> _PARTITION & _mask(_PARTITION_BITS)) - 1,
        "epoch": epoch,
        "moment": (epoch << _TIME_BITS) + np.maximum((rows["time"] >> _STEP_BITS) - _START, 0),
    }


def _mask(bits: int) -> int:
    return (1 << bits) - 1


def _reason() -> Column:
    codes = F.create_map(*(F.lit(part) for code, word in enumerate(REASONS) for part in (word, code)))
    known = F.coalesce(F.element_at(codes, F.col("reason")), F.lit(REASONS.index("other")))
    return F.when(F.col("reason") == "", 0).otherwise(known)
