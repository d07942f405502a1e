"""What a look-up reads of a ledger's files, and the audit, where who took a partition over told of that in a gap."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from services.common.trace import Match
from services.mgmt.lookup.assemble import assemble, begin_of
from services.mgmt.lookup.database import Database
from services.mgmt.lookup.fate import Record
from services.mgmt.lookup.owners import Owners
from services.mgmt.lookup.search import Search
from services.mgmt.lookup.way import follow
from spark.registry import job
from spark.run import Sources, run
from tests.support.fates.told import of_journey
from tests.support.ledger_rows import START, file_rows, stage

Row = dict[str, Any]
HOUR = 3600.0
BEGIN = 100.0
UID = 7
HERE = {"queue": "q", "partition": 1, "virtual_host": "v"}
OWNER = HERE | {"epoch": 1, "instance": "queue-1a"}
HEIR = HERE | {"epoch": 2, "instance": "queue-1b"}
GATEWAY = {"instance": "gateway-1", "virtual_host": "v"}


def rows(told: float) -> Iterator[Row]:
    """Of a message on disk, of which the heir says nothing; it tells of the partition at `told`."""
    yield stage("received", UID, at=BEGIN) | GATEWAY
    yield stage("routed", UID, at=BEGIN + 0.01) | HERE | GATEWAY
    yield stage("enqueued", UID, at=BEGIN + 0.02) | OWNER
    yield stage("persisted", UID, at=BEGIN + 0.03) | OWNER
    yield stage("confirmed", UID, at=BEGIN + 0.05) | GATEWAY
    yield stage("enqueued", UID + 2, at=told) | HEIR
    yield stage("settled", UID + 2, at=told + 1) | HEIR


def gap(instance: str, reason: str, since: float, noticed: float) -> Row:
    begin, end = (START + timedelta(seconds=seconds) for seconds in (since, noticed))
    known = {"service": "queue", "count": -1, "first_row": 1, "last_row": 1, "since": begin, "time": end}
    return known | {"instance": instance, "reason": reason}


def file_by_hour(folder: Path, table: str, found: list[Row]) -> None:
    """As the filer does."""
    in_order = sorted(found, key=lambda row: row["time"])
    for _, some in groupby(in_order, lambda row: row["time"].strftime("%d %H")):
        file_rows(folder, table, list(some))


def looked_up(folder: Path) -> list[tuple[str, str]]:
    """Fate and gap, as `hopline trace` finds them."""
    search = Search(Database(folder))
    owners, match = Owners(search), Match(uid=UID, kind="uid", time_us=None)
    way = follow(search, UID, None, lambda: False)
    now_us = int((START + timedelta(hours=200)).timestamp() * 1e6)
    known: Row = {"owners": owners.of, "tellers": owners.since, "takes_over": owners.takes_over}
    record = Record(search.gaps(begin_of(way, match)), search.followers, now_us, search.ends_alone, **known)
    return [(said.fate, said.gap) for said in of_journey(assemble(match, way, record))]


def audited(spark: SparkSession, folder: Path) -> list[tuple[str, str]]:
    run(spark, job("audit"), Sources(str(folder / "ledger"), options={"grace": "0"}), str(folder / "out"))
    fates = spark.read.parquet(str(folder / "out/audit/fates.parquet")).collect()
    return [(row.fate, row.gap.partition(" ")[0]) for row in fates if row.queue == "q" and row.fate != "settled"]


@pytest.mark.parametrize("died", [2900.0, 50 * HOUR], ids=["soon", "two days later"])
@pytest.mark.parametrize("after", [40.0, 200.0, 30 * HOUR], ids=["at once", "in the next hour", "a day later"])
def test_an_heir_whose_takeover_is_missing(spark: SparkSession, tmp_path: Path, died: float, after: float) -> None:
    """Whenever it came, and told of the partition: whether it has the message is unknown, and both say so."""
    gaps = [gap("queue-9", "given_up", 200, 210), gap("queue-1a", "silent", died, died + 31)]
    gaps.append(gap("queue-1b", "given_up", died + 10, died + 20))
    told = [row | {"row": number} for number, row in enumerate(rows(died + after), 1)]
    file_by_hour(tmp_path / "ledger", "stages", told)
    file_by_hour(tmp_path / "ledger", "gaps", gaps)
    assert looked_up(tmp_path / "ledger") == audited(spark, tmp_path) == [("unknown", "queue-1a")]
