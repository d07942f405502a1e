"""How a stream goes about it."""

from __future__ import annotations

from dataclasses import dataclass

from spark.jobs.audit import GRACE_SECONDS


@dataclass(frozen=True, slots=True)
class Following:
    """Settings; times in seconds."""

    ledger: str
    out: str
    checkpoint: str
    every: float = 5.0  # between batches
    late: float = 10.0  # rows may come so much after others of their time
    keep: float = 3600.0  # a journey of which nothing was heard for so long is counted as what it is
    grace: float = GRACE_SECONDS  # what was heard of in the last seconds is not called lost
    files: int = 200  # in a batch, at most
    quiet: float = 30.0  # without a file, after which all is read that there is: it is judged as of now
