"""Generates a ledger and files it as services do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark.generate.batches import GATEWAYS, Batches, Ints, copies, dead_letters, draw
from spark.generate.ids import ids_table
from spark.generate.journeys import copy_rows, draw_times, publish_rows
from spark.generate.plan import DUPLICATES, Fate, Plan, Publish
from spark.generate.rows import Rows
from spark.generate.table import Instances, stages_table
from spark.generate.truth import Truth, account_for_batches, account_for_copies
from spark.schema import GAPS, arrow_schema

_START = int(datetime(2026, 1, 31, 22, 50, tzinfo=UTC).timestamp() * 1e6)
_ROWS_OF_GAP = 40
_ROW_GROUP_OF_UIDS, _ROW_GROUP = 65_536, 8_192  # as services file them: so much is read at least
_HOUR = 3_600_000_000  # µs


def write(plan: Plan, folder: str, start: int = _START, done: Callable[[int], object] = lambda _batches: None) -> Truth:
    """Writes the ledger of `plan` to a folder, and what is true of it to truth.json; it begins at `start`, in µs.

    `done` is told how many batches are written. Raises OSError where there is no room.
    """
    truth = Truth()
    instances = Instances()
    gaps: list[dict[str, object]] = []
    for number, rows in enumerate(_chunks(plan, truth, start)):
        table = stages_table(rows, instances, names(plan))
        if number < plan.gaps:
            table = _cut_gap(table, gaps)
        truth.rows += len(table)
        _file(table, Path(folder) / "stages", number)
        if plan.ids:
            _file(ids_table(rows), Path(folder) / "ids", number)
        done(min((number + 1) * plan.batches_of_file, plan.batches))
    truth.gaps = len(gaps)
    _file(pa.Table.from_pylist(gaps, arrow_schema(GAPS)), Path(folder) / "gaps", 0)
    _write_truth(truth, Path(folder) / "truth.json")
    return truth


def names(plan: Plan) -> list[tuple[str, str]]:
    """Virtual host and queue by number; the last is the one that dead letters go to."""
    return [("/", f"queue-{number}") for number in range(plan.queues)] + [("/", "dead-letters")]


def _chunks(plan: Plan, truth: Truth, start: int) -> Iterator[dict[str, Ints]]:
    random = np.random.default_rng(plan.seed)
    planted = _plant(plan, random)
    next_uids, next_successor = np.ones(GATEWAYS, np.int64), np.ones(1, np.int64)
    moves_at = start + int(min(plan.batches, plan.batches_of_file) * plan.batch / plan.rate * 1e6 * 0.6)
    clock = start
    for begin in range(0, plan.batches, plan.batches_of_file):
        some = planted[begin : begin + plan.batches_of_file]
        batches = draw(plan, random, some, clock, next_uids, moves_at)
        clock = int(batches.received[-1])
        yield _rows(plan, truth, batches, random, moves_at, next_successor)


def _rows(
    plan: Plan, truth: Truth, batches: Batches, random: np.random.Generator, moves_at: int, next_successor: Ints
) -> dict[str, Ints]:
    rows = Rows()
    publish_rows(rows, batches, random)
    account_for_batches(truth, batches, "/")
    live = copies(batches, plan.queues, next_successor)
    times = draw_times(live, random, moves_at)
    publish = batches.publish[live.batch]
    copy_rows(rows, live, publish == Publish.REFUSED, times, random, moves_at)
    account_for_copies(truth, live, publish, names(plan))
    dead = dead_letters(live, times.settled, plan.queues)
    dead_times = draw_times(dead, random, moves_at)
    copy_rows(rows, dead, np.zeros(len(dead.batch), np.bool_), dead_times, random, moves_at)
    account_for_copies(truth, dead, None, names(plan))
    return rows.columns()


def _plant(plan: Plan, random: np.random.Generator) -> Ints:
    planted = np.zeros(plan.batches, np.int64)
    count = min(plan.losses + plan.duplicates, plan.batches)
    where = random.choice(plan.batches, count, replace=False)
    planted[where[: plan.losses]] = Fate.NEVER_ENQUEUED
    planted[where[plan.losses :]] = random.choice(DUPLICATES, max(0, count - plan.losses))
    return planted


def _cut_gap(table: pa.Table, gaps: list[dict[str, object]]) -> pa.Table:
    """Takes some consecutive rows of an instance out, and says so."""
    instance = table["instance"][len(table) // 2].as_py()
    first = table["row"][len(table) // 2].as_py()
    last = first + _ROWS_OF_GAP - 1
    missing = pc.and_(
        pc.equal(table["instance"], instance),
        pc.and_(pc.greater_equal(table["row"], first), pc.less_equal(table["row"], last)),
    )
    gaps.append(
        {
            "time": datetime.fromtimestamp(pc.max(table.filter(missing)["time"]).value / 1e6 + 1, UTC),
            "service": instance.partition("-")[0],
            "instance": instance,
            "first_row": first,
            "last_row": last,
            "count": _ROWS_OF_GAP,
            "reason": "given_up",
        }
    )
    return table.filter(pc.invert(missing))


def _file(table: pa.Table, folder: Path, number: int) -> None:
    """Each hour to a folder of its own, in order of what rows are looked up by."""
    hours = np.asarray(table["time"].cast(pa.int64())) // _HOUR
    by_uid = "uids" in table.column_names
    order = np.lexsort((np.asarray(table["first_uid"]), hours)) if by_uid else np.argsort(hours, kind="stable")
    table, hours = table.take(order), hours[order]
    for hour in np.unique(hours):
        low, high = np.searchsorted(hours, (hour, hour + 1))
        when = datetime.fromtimestamp(int(hour) * 3600, UTC)
        there = folder / f"date={when:%Y-%m-%d}" / f"hour={when:%H}"
        there.mkdir(parents=True, exist_ok=True)
        # Strings are stored as such, not as the dictionaries that Arrow had in memory.
        pq.write_table(
            table.slice(low, high - low),
            there / f"part-{number:06}.parquet",
            row_group_size=_ROW_GROUP_OF_UIDS if by_uid else _ROW_GROUP,
            compression="zstd",
            store_schema=False,
            write_page_checksum=True,  # as the files of services have them
        )


def _write_truth(truth: Truth, path: Path) -> None:
    value = {
        "rows": truth.rows,
        "gaps": truth.gaps,
        "messages": [{**account._asdict(), "messages": count} for account, count in sorted(truth.messages.items())],
        "planted": [planted._asdict() for planted in truth.planted],
    }
    path.write_text(json.dumps(value, indent=1))
