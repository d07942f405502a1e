"""Files a day of rows as the ledger does (services/common/ledger/README.md), without sending a message."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.ledger.day import STAGES, Day, Ints, Rows
from services.mgmt.ledger.pace import no_rest
from services.mgmt.ledger.parquet import writing
from services.mgmt.ledger.schema import ROW_GROUP, TABLES

_PARTITIONS = 64
_MOST_ROWS = 1_000_000  # in a file of an hour that is over


def generate(
    folder: Path,
    rows: int,
    *,
    hours: int = 24,
    queues: int = 40,
    row_group: Mapping[str, int] = ROW_GROUP,
    parts: int = 360,
) -> int:
    """Makes `folder`, with `rows` rows in the `hours` before this one; gives how many ids it filed.

    The newest hour is in `parts` files, as one that is not over: there is one every ten seconds.
    """
    shutil.rmtree(folder, ignore_errors=True)
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    starts = now - timedelta(hours=hours)
    day = Day(rows // hours, queues, int(starts.timestamp()) * 1_000_000)
    filed = 0
    for number in range(hours):
        hour = starts + timedelta(hours=number)
        seen = day.hour()
        count = parts if number == hours - 1 else -(-len(seen.time) // _MOST_ROWS)
        for part, piece in enumerate(_pieces(seen, count)):
            ids = _ids(piece.where(piece.stage == 0))
            _write(_stages(piece, queues), "stages", folder, hour, part, row_group["stages"])
            _write(ids, "ids", folder, hour, part, row_group["ids"])
            filed += ids.num_rows
    return filed


def _pieces(rows: Rows, count: int) -> Iterator[Rows]:
    """What was filed together: one time after the other, each sorted as the whole is."""
    for indexes in np.array_split(np.argsort(rows.time, kind="stable"), count):
        yield rows.where(np.sort(indexes))


def message_id(uid: int) -> str:
    """Ids as unordered as UUIDs are, and found again from the uid."""
    return str(_message_ids(np.array([uid]))[0].as_py())


def _message_ids(uids: Ints) -> pa.StringArray:
    # An odd factor permutes the numbers below 2**64: sorted by id, uids lie in no order.
    mixed = uids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    digits = (mixed[:, None] >> np.arange(60, -1, -4, dtype=np.uint64)) & np.uint64(15)
    text = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)[digits.astype(np.intp)]
    padded = np.concatenate((np.full((len(uids), 20), ord("m"), dtype=np.uint8), text), axis=1)
    return pa.StringArray.from_buffers(
        len(uids), pa.py_buffer(np.arange(len(uids) + 1, dtype=np.int32) * 36), pa.py_buffer(padded.tobytes())
    )


def _ids(received: Rows) -> pa.Table:
    ends = np.cumsum(received.count)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - received.count, received.count)
    uids = np.repeat(received.first_uid, received.count) + within
    table = pa.table(
        {
            "id": _message_ids(uids),
            "kind": _words(["message_id"], np.zeros(len(uids), dtype=np.int64)),
            "first_uid": uids,
            "last_uid": uids,
            "time": _times(np.repeat(received.time, received.count)),
        }
    )
    return table.sort_by("id")


def _stages(rows: Rows, queues: int) -> pa.Table:
    size = len(rows.time)
    by_queue = [f"queue-{number}" for number in range(queues)]
    in_queue = np.array([service == "queue" for _, service, _ in STAGES])[rows.stage]
    where = np.where(in_queue, 1, 0)
    named = np.where((rows.stage == 0) | (rows.stage == 4), queues, rows.queue)
    settled = np.where(rows.stage == len(STAGES) - 1, 1, 0)
    return pa.table(
        {
            "time": _times(rows.time),
            "stage": _words([stage for stage, _, _ in STAGES], rows.stage),
            "service": _words(["gateway", "queue"], where),
            "instance": _words(["gateway-0f3a", "queue-1-77b1"], where),
            "row": rows.row,
            "virtual_host": _words(["/"], np.zeros(size, dtype=np.int64)),
            "exchange": _words(["orders"], np.zeros(size, dtype=np.int64)),
            "routing_key": _words([f"key.{number}" for number in range(queues)], rows.queue),
            "queue": _words([*by_queue, ""], named),
            "partition": np.where(in_queue, rows.queue % _PARTITIONS, -1).astype(np.int32),
            "epoch": np.where(in_queue, 3, 0),
            "protocol": _words(["amqp-0-9-1", ""], where),
            "connection": _words(["gateway-0f3a-12", ""], where),
            "client": _words(["orders-app", ""], where),
            "consumer": _words(["", "ctag1"], (rows.stage >= 5).astype(np.int64)),
            "attempt": (rows.stage == 5).astype(np.int32),
            "outcome": _words(["", "accepted"], settled),
            "reason": _words([""], np.zeros(size, dtype=np.int64)),
            "target": _words([""], np.zeros(size, dtype=np.int64)),
            "count": rows.count.astype(np.int32),
            "bytes": rows.count * 256,
            "first_uid": rows.first_uid,
            "last_uid": rows.last_uid,
            "uids": _uids(rows),
            "successors": _ranges(rows.first_uid[:0], rows.last_uid[:0], np.zeros(size + 1, dtype=np.int64)),
        }
    )


def _uids(rows: Rows) -> pa.ListArray:
    """The range of a batch, and where the last uid is elsewhere, that one by itself."""
    ends = rows.first_uid + rows.count - 1
    scattered = (ends != rows.last_uid).astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(1 + scattered)))
    firsts, lasts = np.repeat(rows.first_uid, 1 + scattered), np.repeat(ends, 1 + scattered)
    far = offsets[1:][scattered == 1] - 1
    firsts[far] = lasts[far] = rows.last_uid[scattered == 1]
    return _ranges(firsts, lasts, offsets)


def _words(words: list[str], indexes: Ints) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(indexes.astype(np.int32)), pa.array(words))


def _times(times: Ints) -> pa.Array:
    return pa.array(times).cast(pa.timestamp("us", "UTC"))


def _ranges(firsts: Ints, lasts: Ints, offsets: Ints) -> pa.ListArray:
    pairs = pa.StructArray.from_arrays([pa.array(firsts), pa.array(lasts)], ["first", "last"])
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pairs)


def _write(table: pa.Table, name: str, folder: Path, hour: datetime, part: int, row_group: int) -> None:
    """As it is filed: with its encodings, and with checksums of pages, without which a look-up decodes all it reads."""
    place = folder / name / f"date={hour:%Y-%m-%d}" / f"hour={hour:%H}"
    place.mkdir(parents=True, exist_ok=True)
    rows = table.cast(TABLES[name])
    with writing(place / f"{part}.parquet", name, no_rest) as add:
        for start in range(0, len(rows), row_group):
            add(rows[start : start + row_group])
