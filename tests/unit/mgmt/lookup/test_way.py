from __future__ import annotations

from datetime import UTC, datetime

import pytest

from services.common.trace import Journey
from services.mgmt.lookup import way
from services.mgmt.lookup.lookup import LookUp
from tests.support.ledger_files import HOUR, MS, NOON, LedgerFiles, uid


def _hop(ledger: LedgerFiles, before: int, after: int, at: int, queue: str = "q") -> None:
    ledger.stage("dead_lettered", before, at=at, queue=queue, reason="rejected", target="dlx", successors=(after,))
    ledger.stage("routed", after, at=at + MS, queue=f"after-{queue}", service="queue")
    ledger.stage("enqueued", after, at=at + 2 * MS, queue=f"after-{queue}")


def _line(journey: Journey) -> list[tuple[int, int | None]]:
    return [(message.uid, message.predecessor) for message in journey.messages]


@pytest.mark.parametrize("asked", [0, 1, 2, 3])
async def test_chain(ledger: LedgerFiles, look_up: LookUp, asked: int) -> None:
    """Any message of a chain of dead-lettering leads to all of it, across hours and origins."""
    uids = [uid(1), 2 * uid(0), 2 * uid(0) + 7, 3 * uid(0)]
    ledger.stage("received", uids[0])
    for number in range(3):
        _hop(ledger, uids[number], uids[number + 1], at=number * 5 * HOUR + MS)
    ledger.file()
    [journey] = (await look_up.trace(str(uids[asked]))).journeys
    assert _line(journey) == list(zip(uids, [None, *uids[:3]], strict=True))
    assert not journey.cut_short


async def test_batch(ledger: LedgerFiles, look_up: LookUp) -> None:
    """In a batch, each message goes on as the one at the same place of the matching range."""
    ledger.stage("received", (uid(1), uid(9)))
    ledger.stage(
        "dead_lettered",
        (uid(5), uid(6)),
        uid(2),
        at=MS,
        queue="q",
        successors=((uid(100), uid(101)), uid(99)),
    )
    ledger.stage("routed", (uid(99), uid(101)), at=2 * MS, queue="dead")
    ledger.file()
    for before, after in ((5, 100), (6, 101), (2, 99)):
        for asked in (before, after):
            [journey] = (await look_up.trace(str(uid(asked)))).journeys
            assert _line(journey) == [(uid(before), None), (uid(after), uid(before))]
            assert journey.messages[0].steps[-1].successors == [uid(after)]


async def test_copies_part(ledger: LedgerFiles, look_up: LookUp) -> None:
    """Copies in several queues go on each as a message of its own."""
    ledger.stage("received", uid(1))
    _hop(ledger, uid(1), uid(50), at=MS, queue="a")
    _hop(ledger, uid(1), uid(60), at=9 * MS, queue="b")
    ledger.file()
    [journey] = (await look_up.trace(str(uid(60)))).journeys
    assert _line(journey) == [(uid(1), None), (uid(50), uid(1)), (uid(60), uid(1))]


@pytest.mark.parametrize("asked", [1, 50])
async def test_copies_by_hand(ledger: LedgerFiles, look_up: LookUp, asked: int) -> None:
    """A copy is told with what it was copied of, from either; that waits where it was."""
    ledger.stage("received", uid(1))
    ledger.stage("routed", uid(1), at=MS, queue="a")
    ledger.stage("enqueued", uid(1), at=2 * MS, queue="a", partition=1, epoch=1)
    ledger.stage("copied", uid(1), at=9 * MS, queue="a", reason="copied", target="b", successors=(uid(50),))
    ledger.stage("routed", uid(50), at=9 * MS, queue="b", service="queue")
    ledger.stage("enqueued", uid(50), at=10 * MS, queue="b")
    ledger.file()
    [journey] = (await look_up.trace(str(uid(asked)))).journeys
    assert _line(journey) == [(uid(1), None), (uid(50), uid(1))]
    [copy] = journey.messages[0].copies
    assert (copy.queue, copy.state, copy.fate) == ("a", "enqueued", "waiting")


async def test_circle(ledger: LedgerFiles, look_up: LookUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that goes round and round is followed for a while, and that there is more is told."""
    monkeypatch.setattr(way, "MOST_MESSAGES", 5)
    ledger.stage("received", uid(0))
    for number in range(12):
        _hop(ledger, uid(number), uid(number + 1), at=(number + 1) * 10 * MS)
    ledger.file()
    [first] = (await look_up.trace(str(uid(0)))).journeys
    assert [message.uid for message in first.messages] == [uid(number) for number in range(5)]
    assert first.cut_short
    [last] = (await look_up.trace(str(uid(12)))).journeys
    assert [message.uid for message in last.messages] == [uid(number) for number in range(8, 13)]
    assert last.cut_short


async def test_rows_that_contradict(ledger: LedgerFiles, look_up: LookUp) -> None:
    """Rows that say a message went on as itself, or as what it was before, end the search like any others."""
    ledger.stage("routed", uid(1), queue="q")
    ledger.stage("dead_lettered", uid(1), at=MS, queue="q", successors=(uid(1),))
    ledger.stage("dead_lettered", uid(1), at=MS, queue="q", successors=(uid(2),))
    ledger.stage("dead_lettered", uid(2), at=2 * MS, queue="q", successors=(uid(1),))
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    assert {message.uid for message in journey.messages} == {uid(1), uid(2)}


async def test_successor_without_a_record(ledger: LedgerFiles, look_up: LookUp) -> None:
    """A message of which nothing is recorded but that something went on as it is told, last."""
    ledger.stage("received", uid(1))
    ledger.stage("dead_lettered", uid(1), at=MS, queue="q", successors=(uid(2),))
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    assert _line(journey) == [(uid(1), None), (uid(2), uid(1))]
    assert journey.messages[1].steps == []


async def test_out_of_time(ledger: LedgerFiles) -> None:
    """When the time of a look-up is up, what was found is told, and that it is not all."""
    ledger.stage("received", uid(1))
    _hop(ledger, uid(1), uid(2), at=MS)
    _hop(ledger, uid(2), uid(3), at=5 * MS)
    ledger.file()
    times = iter([0.0, 1.0, 100.0, 100.0, 100.0])
    look_up = LookUp(ledger.folder, clock=lambda: next(times))
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    assert [message.uid for message in journey.messages] == [uid(1), uid(2)]
    assert journey.cut_short
    await look_up.stop()


@pytest.mark.parametrize(
    ("instance", "at", "told"),
    [
        ("gateway-1", 5 * MS, True),
        ("gateway-1", 30 * 60_000 * MS, True),
        ("gateway-1", 2 * HOUR, False),
        ("gateway-1", -MS, False),
        ("gateway-9", 5 * MS, False),
    ],
)
async def test_gaps_of_a_whole_way(ledger: LedgerFiles, look_up: LookUp, instance: str, at: int, told: bool) -> None:
    """Where the way is whole, a gap is told that was noticed on it, or within an hour, in an instance of the way."""
    ledger.stage("received", uid(1))
    ledger.stage("returned", uid(1), at=10 * MS)
    ledger.gap(instance, at=at)
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    assert [gap.instance for gap in journey.gaps] == [instance] * told


@pytest.mark.parametrize(("since", "told"), [(5 * MS, True), (20 * MS, False)])
async def test_gap_that_began_after_the_end(ledger: LedgerFiles, look_up: LookUp, since: int, told: bool) -> None:
    """A gap that began when the way had ended hides nothing of it, however soon after it was noticed."""
    ledger.stage("received", uid(1))
    ledger.stage("returned", uid(1), at=10 * MS)
    ledger.gap("gateway-1", at=30 * MS, since=since)
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    assert bool(journey.gaps) is told


@pytest.mark.parametrize("since", [HOUR - MS, None])
async def test_lost_with_its_owner(ledger: LedgerFiles, look_up: LookUp, since: int | None) -> None:
    """What the next owner does not have is lost, with the gap to blame; a gap of another process is not told.

    A gap that does not say when it begins, for mgmt died as well, begins after the last row of its instance.
    """
    owner = {"queue": "q", "partition": 7, "epoch": 3}
    ledger.stage("received", uid(1))
    ledger.stage("enqueued", uid(1), at=MS, **owner)
    ledger.stage("confirmed", uid(1), at=MS)
    ledger.stage("settled", uid(2), at=HOUR - MS, **owner)
    ledger.stage("taken_over", at=HOUR, partition=7, epoch=4, instance="queue-2")
    ledger.gap("queue-1", at=HOUR + MS, reason="silent", since=since)
    ledger.gap("queue-3", at=HOUR + MS, reason="silent", since=MS)
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    [copy] = journey.messages[0].copies
    assert (copy.state, copy.ended, copy.fate) == ("enqueued", False, "lost (transient)")
    assert [gap.instance for gap in journey.gaps] == ["queue-1"]
    assert copy.gap == journey.gaps[0]


async def test_gaps_of_a_way_without_an_end(ledger: LedgerFiles, look_up: LookUp) -> None:
    """Where it is not on record where it went, a gap of then may have that: of its gateway, and of no other."""
    ledger.stage("received", uid(1))
    own = f"gateway-{uid(1) >> 39}"
    ledger.gap(own, at=-60_000 * MS)
    ledger.gap(own, at=HOUR, since=120_000 * MS, reason="silent")
    ledger.gap(own, at=9 * HOUR, since=MS, reason="silent")
    ledger.gap("gateway-98", at=9 * HOUR, since=MS, reason="silent")
    ledger.gap("queue-99", at=9 * HOUR, reason="silent")
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    assert [(gap.instance, gap.time_us - NOON) for gap in journey.gaps] == [(own, 9 * HOUR)]


@pytest.mark.parametrize(("since", "is_blamed"), [(3 * MS, True), (60_000 * MS, False)])
async def test_an_end_after_which_its_owner_died(
    ledger: LedgerFiles, look_up: LookUp, since: int, is_blamed: bool
) -> None:
    """It may have gone on as a dead letter: that may be missing of its owner, if that died right then."""
    place = {"queue": "q", "partition": 1, "epoch": 1}
    ledger.stage("received", uid(1))
    ledger.stage("enqueued", uid(1), at=MS, **place)
    ledger.stage("expired", uid(1), at=3 * MS, reason="message_ttl", **place)
    ledger.gap("queue-1", at=HOUR, since=since, reason="silent")
    ledger.gap("queue-9", at=HOUR, since=3 * MS, reason="silent")
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    [copy] = journey.messages[0].copies
    assert (copy.ended, copy.gap and copy.gap.instance) == (True, "queue-1" if is_blamed else None)


@pytest.mark.parametrize("is_taken", [True, False])
async def test_whose_gap_hides_that_it_came(ledger: LedgerFiles, look_up: LookUp, is_taken: bool) -> None:
    """That of the owner of then, as takeovers say: not of one that had died before, and was missed after."""
    minute = 60_000 * MS
    ledger.stage("enqueued", uid(9), at=-3 * minute, queue="q", partition=7, epoch=1, instance="queue-8")
    if is_taken:
        ledger.stage("taken_over", at=-2 * minute, partition=7, epoch=2, instance="queue-1")
    ledger.stage("received", uid(1))
    ledger.stage("routed", uid(1), queue="q", partition=7)
    ledger.stage("confirmed", uid(1), at=MS)
    ledger.gap("queue-8", at=MS, since=-3 * minute, reason="silent")
    ledger.gap("gateway-7", at=2 * minute, since=0, reason="silent")
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    [copy] = journey.messages[0].copies
    found = copy.fate, copy.gap and copy.gap.instance, [gap.instance for gap in journey.gaps]
    assert found == (("lost", None, []) if is_taken else ("unknown", "queue-8", ["queue-8"]))


async def test_lost_with_the_partition(ledger: LedgerFiles, look_up: LookUp) -> None:
    """What an owner drops as it loses the partition is lost, unless the next one has it, in either order of rows."""
    for number in (1, 2):
        ledger.stage("received", uid(number))
        place = {"queue": "q", "partition": 1}
        ledger.stage("enqueued", uid(number), at=MS, epoch=1, **place)
        ledger.stage("dropped", uid(number), at=9 * MS, epoch=1, reason="no_owner", **place)
    ledger.stage("enqueued", uid(2), at=5 * MS, epoch=2, instance="queue-2", **place)
    ledger.file()
    copies = [(await look_up.trace(str(uid(number)))).journeys[0].messages[0].copies for number in (1, 2)]
    assert [(copy.fate, copy.ended) for [copy] in copies] == [("lost (transient)", False), ("waiting", False)]


async def test_an_end_before_the_partition_was_lost(ledger: LedgerFiles, look_up: LookUp) -> None:
    """What had ended is not lost with its partition, whichever row comes last."""
    place = {"queue": "q", "partition": 1, "epoch": 1}
    ledger.stage("received", uid(1))
    ledger.stage("dropped", uid(1), at=MS, reason="maxlen", **place)
    ledger.stage("dropped", uid(1), at=9 * MS, reason="no_owner", **place)
    ledger.stage("refused", uid(1), at=9 * MS, reason="overflow")
    ledger.file()
    [copy] = (await look_up.trace(str(uid(1)))).journeys[0].messages[0].copies
    assert (copy.state, copy.reason, copy.ended, copy.fate) == ("dropped", "maxlen", True, "")


async def test_an_owner_that_was_only_cut_off(ledger: LedgerFiles, look_up: LookUp) -> None:
    """A gap that was taken back hides nothing, and is not told; one of another instance, or of later, is as before."""
    for number, instance in ((1, "queue-1"), (2, "queue-2"), (3, "queue-3")):
        place = {"queue": "q", "partition": number, "epoch": 1, "instance": instance}
        ledger.stage("received", uid(number))
        ledger.stage("enqueued", uid(number), at=MS, **place)
        ledger.gap(instance, at=40_000 * MS, reason="silent", since=9000 * MS)
    ledger.gap("queue-1", at=50_000 * MS, reason="heard_again")
    ledger.gap("queue-3", at=50_000 * MS, reason="heard_again")
    ledger.gap("queue-3", at=90_000 * MS, reason="silent", since=59_000 * MS)
    ledger.file()
    journeys = [(await look_up.trace(str(uid(number)))).journeys[0] for number in (1, 2, 3)]
    assert [journey.messages[0].copies[0].fate for journey in journeys] == ["waiting", "unknown", "unknown"]
    assert [[gap.time_us - NOON for gap in journey.gaps] for journey in journeys] == [
        [], [40_000 * MS], [90_000 * MS]
    ]  # fmt: skip


async def test_gone_where_others_expire(ledger: LedgerFiles, look_up: LookUp) -> None:
    """What was in memory and died with its owner is lost; where others of its queue expire, it may have done that."""
    for number, queue in ((1, "kept"), (2, "brief")):
        place = {"queue": queue, "partition": 1, "epoch": 1}
        ledger.stage("received", uid(number))
        ledger.stage("enqueued", uid(number), at=MS, **place)
        ledger.stage("confirmed", uid(number), at=2 * MS)
    ledger.stage("expired", uid(3), at=MS, queue="brief", partition=1, epoch=1, reason="message_ttl")
    ledger.stage("taken_over", at=9000 * MS, instance="queue-2", partition=1, epoch=2)
    ledger.gap("queue-1", at=35_000 * MS, reason="silent", since=5000 * MS)
    ledger.file()
    copies = [(await look_up.trace(str(uid(number)))).journeys[0].messages[0].copies for number in (1, 2)]
    assert [copy.fate for [copy] in copies] == ["lost (transient)", "unknown"]


@pytest.mark.parametrize(
    ("table", "at", "fates"),
    [
        ("stages", 0, ["lost (persisted)", "waiting"]),
        ("stages", 20 * HOUR, ["unknown", "unknown"]),
        ("gaps", 20 * HOUR, ["unknown", "unknown"]),
        ("ids", 20 * HOUR, ["lost (persisted)", "waiting"]),
    ],
)
async def test_a_damaged_file(ledger: LedgerFiles, look_up: LookUp, table: str, at: int, fates: list[str]) -> None:
    """Whether a message is lost, or waits, is not known where a file of a later hour may say otherwise."""
    for number in (1, 2):
        owner = {"queue": "q", "partition": number, "epoch": 3}
        ledger.stage("received", uid(number), at=10 * HOUR)
        ledger.stage("enqueued", uid(number), at=10 * HOUR, **owner)
        ledger.stage("persisted", uid(number), at=10 * HOUR, **owner)
    ledger.stage("taken_over", at=15 * HOUR, partition=1, epoch=4, instance="queue-2")
    ledger.stage("received", uid(9), at=20 * HOUR)
    ledger.file()
    hour = f"{datetime.fromtimestamp((NOON + at) / 1e6, UTC):date=%Y-%m-%d/hour=%H}"
    (ledger.folder / table / hour).mkdir(parents=True, exist_ok=True)
    (ledger.folder / table / hour / "b.parquet").write_bytes(b"PAR1")
    await look_up.trace("any")  # of ids
    copies = [(await look_up.trace(str(uid(number)))).journeys[0].messages[0].copies for number in (1, 2)]
    assert [copy.fate for [copy] in copies] == fates
    assert {copy.unread for [copy] in copies} == {f"{table}/{hour}/b.parquet" if "unknown" in fates else ""}
