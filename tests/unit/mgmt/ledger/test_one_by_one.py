"""Messages at places of their own: told in one row, filed as a row for each place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.ledger import encoding
from services.common.ledger.encoding import Mixture, Sealed
from services.common.ledger.place import LedgerPlace
from services.common.ledger.reading import rows_of
from services.common.ledger.row_recorder import RowRecorder
from services.common.ledger.stages import NAMES
from services.mgmt.ledger.decode import decode
from services.rpc.ledger_pb2 import DEAD_LETTERED, RECEIVED, ROUTED, SETTLED, LedgerBatch

BASES = [
    LedgerPlace("/", "ex"),
    LedgerPlace("/", "ex", queue="a", partition=1),
    LedgerPlace("b", "other", queue="b", partition=2),
]
KEYED = [(base, key) for base in BASES for key in ("k", "l", "ключ")]
PLAIN = [LedgerPlace("/", "ex", "k"), LedgerPlace("/", queue="a", partition=1, epoch=7)]

Told = tuple[str, str, str, int]  # stage, queue, routing key, uid
Rows = list[tuple[int, list[int], list[tuple[int, int]] | None]]
"""Stage, uids, and of each message its place and size; None where all are at one place."""


@st.composite
def _rows(draw: st.DrawFn) -> Rows:
    rows: Rows = []
    first = 1 << 39
    for _ in range(draw(st.integers(1, 6))):
        count = draw(st.integers(1, 12))
        gaps = draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))
        uids = [first := first + gap for gap in gaps]
        first += draw(st.sampled_from([0, 1 << 39]))  # or those of another origin
        of_each = st.tuples(st.integers(0, len(KEYED) - 1), st.integers(0, 1 << 31))
        mixed = draw(st.none() | st.lists(of_each, min_size=count, max_size=count))
        rows.append((draw(st.sampled_from([RECEIVED, ROUTED, SETTLED])), uids, mixed))
    return rows


def _record(rows: Rows) -> list[LedgerBatch]:
    sealed: list[Sealed] = []
    recorder = RowRecorder("gateway", "gateway-a", sealed.append)
    for number, (stage, uids, mixed) in enumerate(rows):
        if mixed is None:
            recorder.record(stage, PLAIN[number % 2], uids, size=7)
        else:
            which, sizes = zip(*mixed, strict=True)
            recorder.record_each(stage, Mixture(KEYED, which, sizes), uids)
    recorder.record(DEAD_LETTERED, PLAIN[0], [9, 5], successors=range(100, 102))
    recorder.seal()
    return [LedgerBatch.FromString(each.payload) for each in sealed]


def _expected(rows: Rows) -> list[Told]:
    """What was told, message by message."""
    expected = [("dead_lettered", "", "k", uid) for uid in (5, 9)]
    for number, (stage, uids, mixed) in enumerate(rows):
        for index, uid in enumerate(uids):
            base, key = KEYED[mixed[index][0]] if mixed else (PLAIN[number % 2], PLAIN[number % 2].routing_key)
            expected.append((NAMES[stage], base.queue, key, uid))
    return sorted(expected)


@given(_rows())
def test_every_message_is_filed_at_its_place(rows: Rows) -> None:
    """Stage, queue, key and uid of each message are filed, and the bytes of each place; what goes on as others does."""
    (batch,) = _record(rows)
    filed = decode([batch]).stages.to_pylist()
    told: list[Told] = []
    for row in filed:
        uids = [uid for one in row["uids"] for uid in range(one["first"], one["last"] + 1)]
        assert (row["count"], row["first_uid"], row["last_uid"]) == (len(uids), min(uids), max(uids))
        assert len({uid >> 39 for uid in uids}) == 1
        told += [(row["stage"], row["queue"], row["routing_key"], uid) for uid in uids]
    assert sorted(told) == _expected(rows)
    for number, (_, uids, mixed) in enumerate(rows, 1):
        its = [row for row in filed if row["row"] == number]
        assert sum(row["bytes"] for row in its) == (sum(size for _, size in mixed) if mixed else 7)
        if mixed:
            of_place = {KEYED[place]: 0 for place, _ in mixed}
            for place, size in mixed:
                of_place[KEYED[place]] += size
            assert len(its) == len({(place, uid >> 39) for (place, _), uid in zip(mixed, uids, strict=True)})
            assert {row["bytes"] for row in its if row["bytes"]} <= set(of_place.values()) or len(its) > len(of_place)
    (last,) = [row for row in filed if row["stage"] == "dead_lettered"]
    assert [(one["first"], one["last"]) for one in last["successors"]] == [(100, 100), (101, 101)]


@given(_rows())
def test_reading_row_by_row_gives_the_same(rows: Rows) -> None:
    """What `hopline trace --follow` reads is what is filed."""
    (batch,) = _record(rows)
    told = [
        (NAMES[batch.stages[each.row]], each.place.queue, each.place.routing_key, uid)
        for each in rows_of(batch)
        for uid in chain.from_iterable(range(first, last + 1) for first, last in each.uids)
    ]
    assert sorted(told) == _expected(rows)


@contextmanager
def _small(ranges: int, text: int, at_once: int) -> Iterator[None]:
    before = encoding.MOST_RANGES, encoding.MOST_TEXT, encoding._MIXED_AT_ONCE
    encoding.MOST_RANGES, encoding.MOST_TEXT, encoding._MIXED_AT_ONCE = ranges, text, at_once
    try:
        yield
    finally:
        encoding.MOST_RANGES, encoding.MOST_TEXT, encoding._MIXED_AT_ONCE = before


@given(_rows(), st.integers(12, 40), st.integers(20, 60))
def test_what_is_too_much_for_a_batch_goes_to_several(rows: Rows, ranges: int, text: int) -> None:
    """Nothing is lost or told twice, and the numbers of rows go on from batch to batch."""
    with _small(ranges, text, 3):
        batches = _record(rows)
    told = [
        (NAMES[batch.stages[each.row]], each.place.queue, each.place.routing_key, uid)
        for batch in batches
        for each in rows_of(batch)
        for uid in chain.from_iterable(range(first, last + 1) for first, last in each.uids)
    ]
    assert sorted(told) == _expected(rows)
    following = 1
    for batch in batches:
        assert batch.first_row == following
        following += len(batch.stages)


def test_long_keys_stay_below_the_limit_of_nats() -> None:
    """A read of messages with keys as long as they may be, each another one."""
    sealed: list[Sealed] = []
    recorder = RowRecorder("gateway", "gateway-a", sealed.append)
    keys = [(BASES[1], f"{number:05}".ljust(255, "ж")) for number in range(1000)]
    for first in range(0, 100_000, 1000):
        recorder.record_each(ROUTED, Mixture(keys, range(1000)), range(first, first + 1000))
    recorder.seal()
    assert max(len(each.payload) for each in sealed) < 1 << 20
    assert sum(sum(LedgerBatch.FromString(each.payload).lengths) for each in sealed) == 100_000


@pytest.mark.parametrize("wrong", ["row", "places", "sizes", "keys"])
def test_mixtures_that_contradict_themselves(wrong: str) -> None:
    """A batch whose columns do not match is none, and says so."""
    batch = LedgerBatch(
        first_row=1, times_us=[1], stages=[1], place=[0], outcome=[0], reason=[0], bytes=[0], ranges=[1],
        firsts=[5], lengths=[2], words=[""], bases=[0], keys=["k"],
    )  # fmt: skip
    batch.places.add()
    mixture = batch.mixtures.add(row=1, places=bytes(8), sizes=bytes(8))
    assert decode([batch]).stages.num_rows == 1
    if wrong == "row":
        mixture.row = 2
    elif wrong == "places":
        mixture.places = bytes(4)
    elif wrong == "sizes":
        mixture.sizes = bytes(4)
    else:
        del batch.keys[:]
    with pytest.raises(ValueError, match="mixture"):
        decode([batch])
