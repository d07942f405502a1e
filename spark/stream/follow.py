"""Follows a ledger: after each batch of its files the audit and the latencies up to then are written anew.

A broker that is idle gives no file, and so no batch, but is judged all the same: its gaps are noticed later than its
last row, and what was too young then is not for ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark.as_of import as_of, is_live
from spark.compiling import QUICKLY
from spark.ledger.files import files_of, place
from spark.stream.account import Account
from spark.stream.batch import Batch
from spark.stream.damage import Damage
from spark.stream.following import Following
from spark.stream.state import State

# All that is shuffled is small, but for rows, and they say themselves into how many parts: planning must not take long.
SETTINGS = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}

_LOOK_SECONDS = 5  # between looks whether there is something to be judged again
_FILE = "path string, modificationTime timestamp, length long, content binary"


def java_options(master: str | None) -> str:
    """Options for Java: on one core, compiling takes the time of those it is done for."""
    return QUICKLY if master in {"local", "local[1]"} else ""


def follow(
    spark: SparkSession, following: Following, *, once: bool = False, say: Callable[[str], None] = lambda _: None
) -> Stream:
    """Starts to follow; `once` ends it when all files of now are read. Raises nothing: the stream tells of failure.
    `say` is told of files that cannot be read: they are passed over.

    Only files of the running hours are read: those that services merged afterwards have nothing new.
    """
    folder = place(following.ledger)
    # A batch of a stream has its columns read whatever is asked of it: it would end at the first file that is damaged,
    # or gone. So it is never asked, and Spark's own account says of which files it is made.
    files = (
        spark.readStream.format("binaryFile")
        .schema(_FILE)
        .option("maxFilesPerTrigger", following.files)
        .option("pathGlobFilter", "part-*.parquet")
        .option("recursiveFileLookup", "true")
        .load(folder.uri(f"{folder.path.rstrip('/')}/stages"))
    )
    batches = _Batches(spark, following, Damage(say))
    writer = files.writeStream.foreachBatch(batches).option("checkpointLocation", following.checkpoint)
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=f"{following.every} seconds")
    return Stream(writer.start(), batches)


@dataclass(slots=True)
class _Batches:
    """`last` is the number of the last one, if it is known here, `quiet_since` when it ended, or this began, monotonic.

    `gaps` are files that were read then.
    """

    spark: SparkSession
    following: Following
    damage: Damage
    last: int | None = None
    quiet_since: float = field(default_factory=time.monotonic)
    open: bool = True  # whether time alone changes what is known
    gaps: list[str] = field(default_factory=list)
    turn: Lock = field(default_factory=Lock)

    def __call__(self, _: DataFrame, number: int) -> None:
        with self.turn:
            started = time.monotonic()
            batch = Batch(self.spark, self.following, self._state(), number, self.damage)
            gaps = self._files_of_gaps()
            self.damage.read(self._account().files(number), batch.run)
            batch.state.forget(number)
            self.last = number
            self._done(batch, gaps, started)

    def judge_again(self) -> None:
        """Judges as of now what is known, where no file has come for a while, and that may say something new."""
        with self.turn:
            now, started = datetime.now(UTC), time.monotonic()
            # Spark's own account is needed after a restart only: it comes a little after the end of a batch.
            self.last = self._account().last_batch() if self.last is None else self.last
            if self.last is None or started - self.quiet_since < self.following.quiet:
                return
            live, gaps = is_live(self.following.ledger, now), self._files_of_gaps()
            if gaps == self.gaps and not (live and self.open):
                return
            # As the next batch, without files: the next one with files begins where the last one ended, as this does.
            moment = as_of("", live=live, now=now)
            batch = Batch(self.spark, self.following, self._state(), self.last + 1, self.damage, moment)
            self.damage.read([], batch.run)
            self._done(batch, gaps, started)

    def _account(self) -> Account:
        return Account(self.following.checkpoint)

    def _state(self) -> State:
        return State(self.spark, self.following.checkpoint)

    def _files_of_gaps(self) -> list[str]:
        return files_of(place(self.following.ledger), "gaps", None, None)

    def _done(self, batch: Batch, gaps: list[str], started: float) -> None:
        self.spark.catalog.clearCache()
        batch.summarise(time.monotonic() - started)
        self.gaps, self.open, self.quiet_since = gaps, batch.in_flight > 0, time.monotonic()


@dataclass(frozen=True, slots=True)
class Stream:
    """One that runs."""

    query: StreamingQuery
    batches: _Batches

    def wait(self) -> None:
        """Until it ends, and has an idle broker judged meanwhile; raises what ended it."""
        while not self.query.awaitTermination(_LOOK_SECONDS):
            self.batches.judge_again()
