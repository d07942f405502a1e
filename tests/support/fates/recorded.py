"""A truth beside a copy of the record, and what the analyses say of that."""

from __future__ import annotations

import asyncio
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from spark.registry import job
from spark.run import Sources, run
from tests.support.fates.traffic import publish_to_all
from tests.support.fates.truth import Truth
from tests.support.filed_ledger import FiledLedger
from tests.support.stack import Stack, wait_until

SETTINGS = {"HOPLINE_LEDGER_SECONDS": "0.5"}  # what a stack files twice a second is soon there to be looked at
_FILED_SECONDS = 60.0


class Recorded(NamedTuple):
    """A truth, and a copy of the ledger as it was then, with all that there is to say in it."""

    truth: Truth
    ledger: Path
    begun: datetime
    ended: datetime

    def analyse(self, spark: SparkSession, name: str, **options: Any) -> dict[str, list[Any]]:
        """The tables of an analysis, of everything; anomalies only of when all went on."""
        bounds = (self.begun, self.ended) if name == "anomalies" else (None, None)
        sources = Sources(str(self.ledger), *bounds, options={key: str(value) for key, value in options.items()})
        return run(spark, job(name), sources, str(self.ledger.with_name("analyses"))).tables


async def record_all(stack: Stack, truth: Truth, begun: datetime, ended: float, copy: Path) -> Recorded:
    """Waits until all that was before is filed, and copies it. `ended` is in seconds since the Unix epoch."""
    marks = await publish_to_all(truth, stack.address)
    filed = FiledLedger(stack.data)
    await asyncio.to_thread(wait_until, lambda: _are_filed(filed, marks), _FILED_SECONDS, "record of everything")
    shutil.copytree(stack.data / "ledger", copy)
    return Recorded(truth, copy, begun, datetime.fromtimestamp(ended, UTC))


def _are_filed(ledger: FiledLedger, names: list[str]) -> bool:
    """Whether all of these is on record: processes tell what they do in order, so everything before is there too."""
    ways = ledger.ways(names)
    return all({"persisted", "confirmed"} <= set(ways[name]) for name in names)
