"""From rows to batches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.clock import epoch_ns
from services.common.ledger import encoding, reading
from services.common.ledger.encoding import Mixture, Sealed
from services.common.ledger.place import LedgerPlace, Peer
from services.common.ledger.recorder import OFF
from services.common.ledger.row_recorder import RowRecorder, portions
from services.rpc.ledger_pb2 import COPIED, DEAD_LETTERED, ENQUEUED, RECEIVED, SETTLED, TAKEN_OVER, LedgerBatch

PLACES = [
    LedgerPlace("/", queue="a", partition=1),
    LedgerPlace("/", queue="b", partition=2),
    LedgerPlace("/", queue="a", partition=1),
]
ROWS = st.lists(
    st.tuples(
        st.sampled_from([RECEIVED, ENQUEUED, SETTLED]),
        st.sampled_from(PLACES),
        st.lists(st.integers(1, 1 << 62), unique=True, min_size=1, max_size=20),
        st.sampled_from(["", "accepted"]),
        st.integers(0, 1 << 40),
    ),
    min_size=1,
)


def recorder() -> tuple[RowRecorder, list[LedgerBatch]]:
    batches: list[LedgerBatch] = []

    def sink(batch: Sealed) -> None:
        batches.append(LedgerBatch.FromString(batch.payload))

    return RowRecorder("queue", "queue-1-a", sink), batches


def rows_of(batch: LedgerBatch) -> list[tuple[object, ...]]:
    rows = []
    for row, place, ranges in reading.rows_of(batch):
        uids = [uid for first, last in ranges for uid in range(first, last + 1)]
        outcome = batch.words[batch.outcome[row]]
        rows.append((batch.stages[row], place.queue, place.partition, uids, outcome, batch.bytes[row]))
    return rows


@given(ROWS)
def test_a_batch_says_what_was_recorded(rows: list[tuple[int, LedgerPlace, list[int], str, int]]) -> None:
    """Stage, place, uids, outcome and bytes of every row arrive, and equal places are said once."""
    told, batches = recorder()
    for stage, place, uids, outcome, size in rows:
        told.record(stage, place, uids, outcome=outcome, size=size)
    assert told.seal()
    (batch,) = batches
    expected = [
        (stage, place.queue, place.partition, sorted(uids), outcome, size) for stage, place, uids, outcome, size in rows
    ]
    assert rows_of(batch) == expected
    assert len(batch.places) == len({place for _, place, _, _, _ in rows})
    assert (batch.service, batch.instance, batch.first_row) == ("queue", "queue-1-a", 1)


def test_rows_are_numbered_across_batches() -> None:
    """The number of a batch's first row follows that of the last one before; a sign of life has that of the next."""
    told, batches = recorder()
    for _ in range(3):
        told.record(ENQUEUED, PLACES[0], [1])
        told.record(ENQUEUED, PLACES[0], [2])
        told.seal()
    assert [batch.first_row for batch in batches] == [1, 3, 5]
    last = LedgerBatch.FromString(told.sign_of_life(last=True))
    assert (last.first_row, last.last, last.instance) == (7, True, "queue-1-a")


def test_a_sign_of_life_says_until_when_everything_is_told() -> None:
    """By the clock of the instance; nothing while rows wait to be sent."""
    told, _ = recorder()
    before = epoch_ns() // 1000
    assert before <= LedgerBatch.FromString(told.sign_of_life()).time_us <= epoch_ns() // 1000
    told.note(TAKEN_OVER, PLACES[0])
    assert LedgerBatch.FromString(told.sign_of_life()).time_us == 0


def test_many_rows_are_sealed_at_once() -> None:
    """A burst without a flush between does not grow one batch without bound."""
    told, batches = recorder()
    for uid in range(5000):
        told.record(ENQUEUED, PLACES[0], [uid])
    assert [len(batch.stages) for batch in batches] == [2000, 2000]


def test_a_row_of_many_ranges_is_split_and_stays_below_the_limit_of_nats() -> None:
    """Ranges beyond what a message of NATS holds go to further rows, and none is lost."""
    told, batches = recorder()
    uids = range(1 << 40, (1 << 40) + 200_000, 2)
    told.record(ENQUEUED, PLACES[0], uids, size=10)
    told.record(ENQUEUED, PLACES[1], [1])
    told.seal()
    assert all(len(batch.SerializeToString()) < 1 << 20 for batch in batches)
    rows = [row for batch in batches for row in rows_of(batch)]
    assert [uid for row in rows[:-1] for uid in row[3]] == list(uids)
    assert sum(row[5] for row in rows) == 10
    assert rows[-1][3] == [1]
    assert [batch.first_row for batch in batches] == list(_first_rows(batches))


def _first_rows(batches: list[LedgerBatch]) -> list[int]:
    firsts, following = [], 1
    for batch in batches:
        firsts.append(following)
        following += len(batch.stages)
    return firsts


@pytest.mark.parametrize("stage", [DEAD_LETTERED, COPIED])
@given(uids=st.lists(st.integers(1, 60), unique=True, min_size=1), most=st.integers(2, 7))
def test_successors_match_range_by_range(stage: int, uids: list[int], most: int) -> None:
    """Each message of such a row finds the message that it went on as, also where the row was split."""
    successors = range(1000, 1000 + len(uids))
    before, encoding.MOST_RANGES = encoding.MOST_RANGES, most
    try:
        told, batches = recorder()
        told.record(stage, PLACES[0], uids, reason="expired", successors=successors)
        told.seal()
    finally:
        encoding.MOST_RANGES = before
    assert _pairs(batches) == list(zip(uids, successors, strict=True))


def _pairs(batches: list[LedgerBatch]) -> list[tuple[int, int]]:
    pairs = []
    for batch in batches:
        at = 0
        follow = {succession.row - batch.first_row: list(succession.firsts) for succession in batch.successions}
        for index, ranges in enumerate(batch.ranges):
            for number in range(ranges):
                first, count = batch.firsts[at + number], batch.lengths[at + number]
                pairs += [(first + offset, follow[index][number] + offset) for offset in range(count)]
            at += ranges
    return pairs


def test_properties_travel_with_the_row_that_tells_of_their_messages() -> None:
    """What identifies messages waits for a row, and goes out once."""
    told, batches = recorder()
    told.identify("amqp-0-9", [1, 2], [b"a", b"b"])
    assert not told.seal()
    told.record(RECEIVED, PLACES[0], [1, 2])
    told.seal()
    told.record(RECEIVED, PLACES[0], [3])
    told.seal()
    assert [list(each.properties) for each in batches[0].identified] == [[b"a", b"b"]]
    assert not batches[1].identified


@pytest.mark.parametrize("size", [0, 3, 500])
def test_what_identifies_messages_stays_below_the_limit_of_nats(size: int) -> None:
    """However many messages of how short names, and though each batch has their uids, and those of others."""
    told, batches = recorder()
    names, count = [bytes(size)] * 120_000, 0
    for some in portions(names) * 2:
        its = names[some]
        told.identify("amqp-0-9", range(count, count + len(its)), its)
        told.record(RECEIVED, PLACES[0], range(count, count + len(its)))
        count += len(its)
    told.seal()
    assert max(batch.ByteSize() for batch in batches) < 1 << 19
    identified = [uid for batch in batches for each in batch.identified for uid in each.uids]
    assert identified == [*range(2 * len(names))]
    for batch in batches:
        rows = {uid for row in rows_of(batch) for uid in row[3]}
        assert all(rows.issuperset(each.uids) for each in batch.identified)


def test_a_connection_is_told_of_once_in_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer of a connection is told with its first row in each hour, at any place; not with others."""
    told, batches = recorder()
    here = LedgerPlace("/", protocol="amqp", connection="5.1", client="app", peer=Peer("alice", "10.0.0.1:5000"))
    for minute in (0, 1, 59, 60, 61):
        monkeypatch.setattr("services.common.ledger.row_recorder.epoch_ns", lambda now=minute: now * 60_000_000_000)
        told.record(RECEIVED, here._replace(exchange=f"e{minute}"), [minute + 1])
        told.record_each(RECEIVED, Mixture([(here, "key")], [0]), [100 + minute])
        told.seal()
    said = [(number, each) for number, batch in enumerate(batches) for each in batch.connections]
    assert [number for number, _ in said] == [0, 3]
    assert [(each.time_us, each.connection, each.user, each.peer) for _, each in said] == [
        (0, "5.1", "alice", "10.0.0.1:5000"),
        (3_600_000_000, "5.1", "alice", "10.0.0.1:5000"),
    ]


def test_each_connection_is_told_of() -> None:
    """Two connections of one user from one address are two."""
    told, batches = recorder()
    for name in ("5.1", "5.2"):
        told.record(RECEIVED, LedgerPlace("/", connection=name, peer=Peer("alice", "local")), [1])
    told.record(ENQUEUED, PLACES[0], [1])
    told.seal()
    assert [each.connection for each in batches[0].connections] == ["5.1", "5.2"]


def test_nothing_is_told_of_no_messages() -> None:
    """A row without messages is none."""
    told, batches = recorder()
    told.record(ENQUEUED, PLACES[0], [])
    assert not told.seal()
    assert not batches


def test_nothing_happens_where_there_is_no_ledger() -> None:
    """The recorder that is off says so, and takes everything."""
    assert not OFF.on
    OFF.record(ENQUEUED, PLACES[0], [1])
    OFF.identify("amqp-0-9", [1], [b""])


def test_a_place_that_is_gone_gives_its_number_to_no_other() -> None:
    """Places are known by identity, and a new object may be where one was that nobody else keeps."""
    queues = ["a" if number % 2 else f"queue-{number}" for number in range(300)]
    told, batches = recorder()
    for queue in queues:
        told.record(ENQUEUED, LedgerPlace("/", queue=queue), [1])
    told.seal()
    assert [row[1] for batch in batches for row in rows_of(batch)] == queues


def test_a_mixture_of_long_places_stays_below_the_limit_of_nats() -> None:
    """Each of its places says the names of its client and consumer anew."""
    bases = [LedgerPlace("/", queue=f"{number}", client="c" * 7500, consumer="t" * 1000) for number in range(300)]
    told, batches = recorder()
    for first in range(1, 5 * 300, 300):
        which = range(len(bases))
        told.record_each(RECEIVED, Mixture([(base, "k") for base in bases], which), range(first, first + 300))
    told.seal()
    assert sum(len(mixture.places) for batch in batches for mixture in batch.mixtures) == 4 * 5 * 300
    assert max(batch.ByteSize() for batch in batches) < 1 << 19


def test_a_row_takes_no_longer_where_its_batch_has_many_places() -> None:
    """A fanout to thousands of queues has so many: they are looked up, and not looked through for each row."""

    class LookedUp(dict[int, int]):
        def __iter__(self) -> Iterator[int]:
            raise AssertionError("each is looked at")

    draft = encoding.Draft(LedgerBatch(), 1)
    row = encoding.Row(
        1, RECEIVED, PLACES[0], [1, 2], "", "", 0, None, Mixture([(PLACES[0], "a"), (PLACES[1], "b")], b"\0\1")
    )
    ranges = encoding.ranges_of(row)
    draft.add([row], [ranges])
    draft._numbers = LookedUp(draft._numbers)
    assert draft.fits([row], [ranges])


def test_rows_that_are_too_many_for_a_batch_begin_the_next_one_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one they would take several times as long, and the batch is full all the same."""
    monkeypatch.setattr(encoding, "MOST_RANGES", 150)
    added: list[int] = []
    add = encoding.Draft.add
    monkeypatch.setattr(
        encoding.Draft, "add", lambda draft, rows, ranges: (added.append(len(rows)), add(draft, rows, ranges))[1]
    )
    told, batches = recorder()
    for number in range(150):
        told.record(ENQUEUED, PLACES[0], [3 * number, 3 * number + 2])
    told.seal()
    assert added == [50, 50, 50]
    assert [len(batch.stages) for batch in batches] == [50, 50, 50]
