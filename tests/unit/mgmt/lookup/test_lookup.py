from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from services.common.errors import ResourceError, SyntaxFault
from services.common.restored import Restored
from services.common.trace import Message, Trace
from services.mgmt.lookup import answers, lookup
from services.mgmt.lookup.answers import Answers
from services.mgmt.lookup.lookup import LookUp
from tests.support.ledger_files import HOUR, MS, NOON, LedgerFiles, uid


def _stages(message: Message) -> list[str]:
    return [step.stage for step in message.steps]


def _whole_way(ledger: LedgerFiles, one: int, at: int = 0, queue: str = "q") -> None:
    """A message that is published, delivered and acknowledged."""
    ledger.stage("received", one, at=at, exchange="e", routing_key="k")
    ledger.stage("routed", one, at=at + MS, exchange="e", routing_key="k", queue=queue)
    ledger.stage("enqueued", one, at=at + 2 * MS, queue=queue, partition=7, epoch=3)
    ledger.stage("delivered", one, at=at + 3 * MS, queue=queue, partition=7, epoch=3, consumer="c", attempt=1)
    ledger.stage("settled", one, at=at + 4 * MS, queue=queue, partition=7, epoch=3, outcome="accepted")


async def test_by_message_id(ledger: LedgerFiles, look_up: LookUp) -> None:
    """A message id leads to every stage of the message, in order, with where it was and how long it waited."""
    _whole_way(ledger, uid(1))
    _whole_way(ledger, uid(2))
    ledger.named("order-1", uid(1))
    ledger.file()
    [journey] = (await look_up.trace("order-1")).journeys
    assert (journey.match.uid, journey.match.kind) == (uid(1), "message_id")
    [message] = journey.messages
    assert _stages(message) == ["received", "routed", "enqueued", "delivered", "settled"]
    assert [step.wait_us for step in message.steps] == [0, MS, MS, MS, MS]
    delivered = message.steps[3]
    assert (delivered.queue, delivered.partition, delivered.epoch, delivered.attempt) == ("q", 7, 3, 1)
    assert message.steps[0].partition is None
    [copy] = message.copies
    assert (copy.queue, copy.state, copy.outcome, copy.ended) == ("q", "settled", "accepted", True)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        (str(uid(1)), "uid"),
        ("job 7", "correlation_id"),
        ("4bf92f3577b34da6a3ce929d0e0e4736", "trace_id"),
        ("4BF92F3577B34DA6A3CE929D0E0E4736", "trace_id"),
    ],
)
async def test_by_other_ids(ledger: LedgerFiles, look_up: LookUp, asked: str, kind: str) -> None:
    """A uid, a correlation id and a trace id in either case lead to the same message."""
    _whole_way(ledger, uid(1))
    ledger.named("job 7", uid(1), kind="correlation_id")
    ledger.named("4bf92f3577b34da6a3ce929d0e0e4736", uid(1), kind="trace_id")
    ledger.file()
    [journey] = (await look_up.trace(asked)).journeys
    assert journey.match.kind == kind
    assert [message.uid for message in journey.messages] == [uid(1)]


async def test_batch(ledger: LedgerFiles, look_up: LookUp) -> None:
    """A row belongs to the messages that its ranges hold, not to those between them."""
    ledger.stage("received", (uid(1), uid(4)))
    ledger.stage("settled", uid(1), (uid(3), uid(4)), at=MS, queue="q")
    ledger.file()
    ways = {number: (await look_up.trace(str(uid(number)))).journeys for number in range(6)}
    assert ways[0] == ways[5] == []
    assert [_stages(ways[number][0].messages[0]) for number in (1, 2, 3)] == [
        ["received", "settled"],
        ["received"],
        ["received", "settled"],
    ]
    assert [step.count for step in ways[1][0].messages[0].steps] == [4, 3]


async def test_fan_out(ledger: LedgerFiles, look_up: LookUp) -> None:
    """Each queue's copy has its own waits and its own end."""
    ledger.stage("received", uid(1))
    for queue in "ab":
        ledger.stage("routed", uid(1), at=MS, queue=queue)
    ledger.stage("enqueued", uid(1), at=2 * MS, queue="a")
    ledger.stage("enqueued", uid(1), at=5 * MS, queue="b")
    ledger.stage("settled", uid(1), at=9 * MS, queue="a", outcome="accepted")
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    [message] = journey.messages
    assert [(step.queue, step.wait_us // MS) for step in message.steps] == [
        ("", 0), ("a", 1), ("b", 1), ("a", 1), ("b", 4), ("a", 7),
    ]  # fmt: skip
    assert [(copy.queue, copy.ended) for copy in message.copies] == [("a", True), ("b", False)]
    assert not message.ended


@pytest.mark.parametrize("stage", ["returned", "refused", "rolled_back"])
async def test_ends_at_the_gateway(ledger: LedgerFiles, look_up: LookUp, stage: str) -> None:
    """What never came into a queue has ended, and says why."""
    ledger.stage("received", uid(1))
    ledger.stage("routed", uid(1), at=MS, queue="q")
    ledger.stage(stage, uid(1), at=MS, reason="no_route")
    ledger.file()
    [message] = (await look_up.trace(str(uid(1)))).journeys[0].messages
    assert message.ended
    assert [(copy.queue, copy.state, copy.ended) for copy in message.copies] == [("q", stage, True)]
    assert message.steps[-1].reason == "no_route"


@pytest.mark.parametrize(("stage", "ended"), [("expired", True), ("dropped", True), ("requeued", False)])
async def test_ends_in_a_queue(ledger: LedgerFiles, look_up: LookUp, stage: str, ended: bool) -> None:
    """A copy that expired or was dropped has ended; one that went back to its place has not."""
    ledger.stage("received", uid(1))
    ledger.stage("routed", uid(1), at=MS, queue="q")
    ledger.stage(stage, uid(1), at=2 * MS, queue="q", reason="why")
    ledger.file()
    [message] = (await look_up.trace(str(uid(1)))).journeys[0].messages
    [copy] = message.copies
    assert (copy.state, copy.reason, copy.ended, message.ended) == (stage, "why", ended, ended)


async def test_on_disk_after_all(ledger: LedgerFiles, look_up: LookUp) -> None:
    """What has become of a copy is what its queue said last; that it is on disk, or was sent, may be known later."""
    ledger.stage("routed", uid(1), uid(2), uid(3), queue="q")
    ledger.stage("settled", uid(1), at=MS, queue="q", outcome="accepted")
    ledger.stage("delivered", uid(2), at=MS, queue="q")
    ledger.stage("sent", uid(2), at=2 * MS, queue="q")
    ledger.stage("persisted", uid(1), uid(2), at=3 * MS, queue="q")
    ledger.stage("sent", uid(4), at=3 * MS, queue="q")
    ledger.file()
    found = {}
    for number in (1, 2, 3, 4):
        [journey] = (await look_up.trace(str(uid(number)))).journeys
        found[number] = [(copy.state, copy.outcome, copy.ended) for copy in journey.messages[0].copies]
    assert found == {
        1: [("settled", "accepted", True)],
        2: [("delivered", "", False)],
        3: [("routed", "", False)],
        4: [("sent", "", False)],
    }


async def test_redelivery(ledger: LedgerFiles, look_up: LookUp) -> None:
    """Every delivery is told, and what came between them."""
    ledger.stage("received", uid(1))
    ledger.stage("delivered", uid(1), at=MS, queue="q", attempt=1, consumer="a")
    ledger.stage("requeued", uid(1), at=2 * MS, queue="q", reason="consumer_gone")
    ledger.stage("recovered", uid(1), at=3 * MS, queue="q", reason="journal", epoch=4, instance="queue-2")
    ledger.stage("delivered", uid(1), at=4 * MS, queue="q", attempt=2, consumer="b", epoch=4, instance="queue-2")
    ledger.file()
    [message] = (await look_up.trace(str(uid(1)))).journeys[0].messages
    assert [(step.stage, step.attempt, step.epoch) for step in message.steps[1:]] == [
        ("delivered", 1, None),
        ("requeued", 0, None),
        ("recovered", 0, 4),
        ("delivered", 2, 4),
    ]


async def test_same_moment(ledger: LedgerFiles, look_up: LookUp) -> None:
    """Stages that the clock does not tell apart come as they must have followed each other."""
    for stage in ("settled", "enqueued", "delivered", "routed", "received"):
        ledger.stage(stage, uid(1), queue="" if stage == "received" else "q")
    ledger.file()
    [message] = (await look_up.trace(str(uid(1)))).journeys[0].messages
    assert _stages(message) == ["received", "routed", "enqueued", "delivered", "settled"]


async def test_id_of_several(ledger: LedgerFiles, look_up: LookUp) -> None:
    """An id that several messages have leads to as many of them as are asked for, the newest first."""
    for number in range(5):
        ledger.stage("received", uid(number), at=number * MS)
    ledger.named("same", uid(0), uid(2))
    ledger.named("same", uid(4), at=4 * MS)
    ledger.file()
    some = await look_up.trace("same", journeys=3)
    assert [journey.match.uid for journey in some.journeys] == [uid(4), uid(2), uid(1)]
    assert some.more
    every = await look_up.trace("same", journeys=4)
    assert len(every.journeys) == 4
    assert not every.more


async def test_older_days(ledger: LedgerFiles, look_up: LookUp) -> None:
    """The newest day that has an id answers for it, all days when everything is asked for; uids are found in any."""
    for number, days in enumerate((0, 1, 9)):
        _whole_way(ledger, uid(number), at=-days * 24 * HOUR)
        ledger.named("same", uid(number), at=-days * 24 * HOUR)
    for hour in range(1, 30):
        ledger.stage("received", uid(1000 + hour), at=-hour * HOUR)
    ledger.file()
    assert [journey.match.uid for journey in (await look_up.trace("same", 10)).journeys] == [uid(0)]
    everything = await look_up.trace("same", 10, everything=True)
    assert [journey.match.uid for journey in everything.journeys] == [uid(0), uid(1), uid(2)]
    [message] = (await look_up.trace(str(uid(2)))).journeys[0].messages
    assert len(message.steps) == 5


async def test_long_stay(ledger: LedgerFiles, look_up: LookUp) -> None:
    """A message that waited for days is found whole by what was said of it last."""
    ledger.stage("received", uid(1), at=-100 * HOUR)
    ledger.stage("routed", uid(1), at=-100 * HOUR + MS, queue="q")
    for hour in range(100):
        ledger.stage("received", uid(1000 + hour), at=-hour * HOUR)
    ledger.stage("settled", uid(1), queue="q")
    ledger.file()
    [message] = (await look_up.trace(str(uid(1)))).journeys[0].messages
    assert _stages(message) == ["received", "routed", "settled"]


async def test_unfiled_rows(ledger: LedgerFiles) -> None:
    """What is not filed yet is found too, and what is in both places is told once."""
    ledger.stage("received", uid(1))
    ledger.file()
    ledger.numbers.clear()
    ledger.stage("received", uid(1))
    ledger.stage("routed", uid(1), at=MS, queue="q")
    ledger.named("new", uid(1))
    unfiled = ledger.tables()
    look_up = LookUp(ledger.folder, lambda: unfiled)
    for asked in ("new", str(uid(1))):
        [message] = (await look_up.trace(asked)).journeys[0].messages
        assert _stages(message) == ["received", "routed"]
    await look_up.stop()


async def test_nothing_filed(look_up: LookUp) -> None:
    """Where there is no ledger, there are no answers, and no errors."""
    for asked in ("order-1", str(uid(1))):
        assert await look_up.trace(asked) == Trace(id=asked, journeys=[], more=False)


async def test_id_without_a_record(ledger: LedgerFiles, look_up: LookUp) -> None:
    """A message whose id was filed and whose rows were lost is told as one of which nothing is known, with the gap."""
    ledger.named("lost", uid(1))
    ledger.gap("gateway-1", at=MS)
    ledger.file()
    [journey] = (await look_up.trace("lost")).journeys
    assert journey.messages == []
    assert [gap.reason for gap in journey.gaps] == ["given_up"]


async def test_received_in_a_gap(ledger: LedgerFiles, look_up: LookUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an id that is not on record, the last day's gaps of gateways are told, the newest first: it may have been
    received there.
    """
    monkeypatch.setattr(answers, "epoch_ns", lambda: (NOON + 2 * HOUR) * 1000)
    ledger.gap("gateway-1", at=MS)
    ledger.gap("gateway-2", at=HOUR)
    ledger.gap("gateway-3", at=-23 * HOUR)
    ledger.gap("queue-1", at=MS)
    ledger.file()
    found = await look_up.trace("order-1")
    assert found.journeys == []
    assert [gap.instance for gap in found.gaps] == ["gateway-2", "gateway-1"]


@pytest.mark.parametrize(
    "asked",
    [
        "'; DROP TABLE stages; --",
        "' or '1'='1",
        "*",
        "/etc/passwd",
        "../../*.parquet",
        "$name",
        "-1",
        "0",
        str(1 << 63),
        "9" * 19,
        "9" * 1024,
        "٣" * 15,
        "\x00",
        "naïve \N{PILE OF POO}",
    ],
)
async def test_hostile_ids(ledger: LedgerFiles, look_up: LookUp, asked: str) -> None:
    """Any text is an id and nothing else: it is found when it is filed, and only then."""
    ledger.stage("received", uid(1))
    ledger.stage("received", uid(2))
    ledger.named("innocent", uid(1))
    ledger.file()
    assert (await look_up.trace(asked)).journeys == []
    ledger.named(asked, uid(2))
    ledger.file("b.parquet")
    assert [journey.match.uid for journey in (await look_up.trace(asked)).journeys] == [uid(2)]


@pytest.mark.parametrize(("asked", "journeys"), [("", 1), ("x" * 1025, 1), ("x", 0), ("x", 101), ("x", -1)])
async def test_out_of_range(look_up: LookUp, asked: str, journeys: int) -> None:
    """What cannot be asked for is refused."""
    with pytest.raises(SyntaxFault):
        await look_up.trace(asked, journeys)


async def test_too_many_at_a_time(look_up: LookUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look-ups that would wait for too many others are refused."""
    monkeypatch.setattr(lookup, "_MOST_WAITING", 0)
    with pytest.raises(ResourceError, match="too many"):
        await look_up.trace("x")


async def test_takes_too_long(ledger: LedgerFiles, look_up: LookUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up is broken off when its time is up, and the next one is answered."""
    _whole_way(ledger, uid(1))
    ledger.file()
    with monkeypatch.context() as patched:
        patched.setattr(lookup, "_HARD_SECONDS", 0.0)
        with pytest.raises(ResourceError):
            await look_up.trace(str(uid(1)))
    assert (await look_up.trace(str(uid(1)))).journeys


async def test_what_a_restore_has_undone(ledger: LedgerFiles) -> None:
    """What happened between a backup and its restore is told with that; what happened before or after, without."""
    _whole_way(ledger, uid(1), at=-20 * MS)
    _whole_way(ledger, uid(2))
    _whole_way(ledger, uid(3), at=20 * MS)
    ledger.file()
    restored = Restored(generation=2, backup_ms=NOON // 1000 - 10, restored_ms=NOON // 1000 + 10)
    opened = LookUp(ledger.folder, restored=lambda: restored)
    told = [(await opened.trace(str(uid(number)))).restored for number in (1, 2, 3)]
    await opened.stop()
    assert told == ["", str(restored), ""]


async def test_several_at_once(ledger: LedgerFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two questions are answered at a time, each with its own unfiled rows; one that is broken off leaves the other."""
    _whole_way(ledger, uid(1))
    ledger.named("filed", uid(1))
    ledger.file()
    together = threading.Barrier(2, timeout=30)
    ask = Answers.trace

    def ask_together(self: Answers, asked: str, *more: Any) -> Trace:
        together.wait()
        return ask(self, asked, *more)

    monkeypatch.setattr(Answers, "trace", ask_together)
    ledger.named("unfiled", uid(1))
    tables = iter([{}, ledger.tables()])
    look_up = LookUp(ledger.folder, lambda: next(tables))
    found = await asyncio.gather(look_up.trace("filed"), look_up.trace("unfiled"))
    assert sorted(len(trace.journeys) for trace in found) == [1, 1]
    monkeypatch.setattr(lookup, "_HARD_SECONDS", 0.0)
    tables = iter([{}, {}])
    broken = await asyncio.gather(*(look_up.trace("filed") for _ in range(2)), return_exceptions=True)
    assert all(isinstance(one, ResourceError) for one in broken)
    await look_up.stop()


@pytest.mark.parametrize("everything", [False, True])
async def test_before_it_is_filed_told_once(ledger: LedgerFiles, everything: bool) -> None:
    """What is not filed yet is told once, over however many days it is looked for."""
    for hours in (0, -60):
        ledger.stage("received", uid(hours + 100), at=hours * HOUR)
        ledger.named("other", uid(hours + 100), at=hours * HOUR)
    ledger.file()
    ledger.stage("received", uid(1))
    ledger.named("new", uid(1))
    unfiled = ledger.tables()
    look_up = LookUp(ledger.folder, lambda: unfiled)
    trace = await look_up.trace("new", 1, everything=everything)
    assert ([journey.match.uid for journey in trace.journeys], trace.more) == ([uid(1)], False)
    await look_up.stop()


async def test_id_that_could_be_a_uid(ledger: LedgerFiles, look_up: LookUp) -> None:
    """A number by which a message is called is that, whether a message has it for its uid or not."""
    ledger.stage("received", uid(1))
    ledger.stage("received", uid(2))
    ledger.named(str(uid(2)), uid(1))
    ledger.named(str(uid(9)), uid(1))
    ledger.file()
    [found] = (await look_up.trace(str(uid(9)), 1)).journeys
    assert (found.match.uid, found.match.kind) == (uid(1), "message_id")
    both = [await look_up.trace(str(uid(2)), journeys) for journeys in (1, 2)]
    assert [([each.match.uid for each in one.journeys], one.more) for one in both] == [
        ([uid(2)], True),
        ([uid(2), uid(1)], False),
    ]


async def test_id_that_could_be_a_trace_id(ledger: LedgerFiles, look_up: LookUp) -> None:
    """A message id of 32 hexadecimal digits is found as its publisher wrote it."""
    ledger.stage("received", uid(1))
    ledger.named("4BF92F3577B34DA6A3CE929D0E0E4736", uid(1))
    ledger.file()
    [found] = (await look_up.trace("4BF92F3577B34DA6A3CE929D0E0E4736")).journeys
    assert found.match.kind == "message_id"
