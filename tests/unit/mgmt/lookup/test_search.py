from __future__ import annotations

import pytest

from services.common.errors import SyntaxFault
from services.common.question import Sought
from services.common.trace import Trace
from services.mgmt.lookup import answers
from services.mgmt.lookup.lookup import LookUp
from tests.support.ledger_files import HOUR, MS, NOON, ORIGIN, LedgerFiles, uid


def _publish(
    ledger: LedgerFiles,
    *uids: int | tuple[int, int],
    at: int = 0,
    queue: str = "work",
    key: str = "k",
    client: str = "shop",
) -> None:
    facts = {"virtual_host": "/", "exchange": "e", "routing_key": key, "client": client, "connection": "5.1"}
    ledger.stage("received", *uids, at=at, **facts)
    ledger.stage("routed", *uids, at=at + MS, queue=queue, **facts)
    ledger.stage("enqueued", *uids, at=at + 2 * MS, virtual_host="/", queue=queue)


def _fate(
    ledger: LedgerFiles, stage: str, *uids: int | tuple[int, int], at: int, queue: str = "work", **facts: object
) -> None:
    ledger.stage(stage, *uids, at=at, virtual_host="/", queue=queue, **facts)


def _found(trace: Trace) -> list[int]:
    return [journey.match.uid - ORIGIN for journey in trace.journeys]


async def test_newest_first(ledger: LedgerFiles, look_up: LookUp) -> None:
    """Of what a queue got, the newest messages come first, and it is said that there are more."""
    _publish(ledger, (uid(1), uid(3)))
    _publish(ledger, uid(4), at=-3 * HOUR)
    _publish(ledger, uid(5), queue="other")
    ledger.file()
    assert _found(await look_up.search(Sought(queue="work"), 10)) == [3, 2, 1, 4]
    some = await look_up.search(Sought(queue="work"), 2)
    assert (_found(some), some.more) == ([3, 2], True)


async def test_what_no_gateway_has_told(ledger: LedgerFiles, look_up: LookUp) -> None:
    """What a queue got is found there also where its gateway was killed before it could tell of it."""
    _publish(ledger, uid(1))
    ledger.stage("enqueued", uid(2), at=3 * MS, virtual_host="/", queue="work")
    ledger.file()
    assert _found(await look_up.search(Sought(queue="wo*"), 10)) == [2, 1]
    assert _found(await look_up.search(Sought(queue="work", key="*"), 10)) == [1]


@pytest.mark.parametrize(
    ("sought", "found"),
    [
        (Sought(key="eu.new"), [2]),
        (Sought(key="eu.*"), [3, 2]),
        (Sought(client="shop"), [4, 2, 1]),
        (Sought(client="5.1", key="k"), [4, 1]),
        (Sought(fate="dead_lettered"), [4, 2]),
        (Sought(fate="dead_lettered", client="shop", key="k", queue="work"), [4]),
        (Sought(fate="dead_lettered", queue="other"), []),
        (Sought(fate="accepted", client="shop"), [1]),
        (Sought(fate="rejected"), []),
        (Sought(consumer="clerk", key="k"), [1]),
        (Sought(consumer="desk"), [3, 1]),
        (Sought(consumer="desk", fate="accepted", client="shop"), [1]),
        (Sought(virtual_host="other", queue="work"), []),
    ],
)
async def test_combined(ledger: LedgerFiles, look_up: LookUp, sought: Sought, found: list[int]) -> None:
    """What is asked for applies to one message all together, whichever rows say it."""
    _publish(ledger, uid(1))
    _publish(ledger, uid(2), key="eu.new", at=1)
    _publish(ledger, uid(3), key="eu.old", client="crm", at=2)
    _publish(ledger, uid(4), at=3)
    sent = {"client": "desk", "connection": "6.2"}
    _fate(ledger, "sent", uid(1), uid(3), at=5 * MS, consumer="clerk", **sent)
    _fate(ledger, "settled", uid(1), uid(3), at=6 * MS, outcome="accepted")
    _fate(ledger, "dead_lettered", (uid(2), uid(2)), uid(4), at=7 * MS, reason="rejected")
    ledger.file()
    assert _found(await look_up.search(sought, 10)) == found


async def test_moved_by_hand(ledger: LedgerFiles, look_up: LookUp) -> None:
    """That is a fate of its own, and no dead letter."""
    _publish(ledger, uid(1))
    _publish(ledger, uid(2), at=1)
    for number, reason in ((1, "moved"), (2, "expired")):
        _fate(ledger, "dead_lettered", uid(number), at=5 * MS, reason=reason)
    ledger.file()
    assert _found(await look_up.search(Sought(fate="moved"), 10)) == [1]
    assert _found(await look_up.search(Sought(fate="dead_lettered"), 10)) == [2]


async def test_fate_long_after(ledger: LedgerFiles, look_up: LookUp) -> None:
    """A message whose end was days after its publish is found by both; times are those of its end."""
    _publish(ledger, uid(1), at=-50 * HOUR)
    _publish(ledger, uid(2), at=-50 * HOUR, client="crm")
    _fate(ledger, "expired", (uid(1), uid(2)), at=0)
    _publish(ledger, uid(3), at=0)
    ledger.file()
    sought = Sought(client="shop", fate="expired", since_us=NOON - HOUR, until_us=NOON + HOUR)
    [journey] = (await look_up.search(sought, 10)).journeys
    assert (journey.match.uid, journey.match.kind, journey.match.time_us) == (uid(1), "found", NOON)
    assert [step.stage for step in journey.messages[0].steps] == ["received", "routed", "enqueued", "expired"]


async def test_times(ledger: LedgerFiles, look_up: LookUp) -> None:
    """Since is from then on, until is before then."""
    for number in range(4):
        _publish(ledger, uid(number), at=number * HOUR)
    ledger.file()
    bounds = Sought(queue="work", since_us=NOON + HOUR + MS, until_us=NOON + 3 * HOUR + MS)
    assert _found(await look_up.search(bounds, 10)) == [2, 1]


async def test_refused_of_a_queue(ledger: LedgerFiles, look_up: LookUp) -> None:
    """What was refused is in no queue; where it was to go is what it was routed to."""
    _publish(ledger, uid(1))
    _publish(ledger, uid(2), queue="other")
    ledger.stage("refused", (uid(1), uid(2)), at=5 * MS, virtual_host="/", reason="overflow")
    ledger.file()
    assert _found(await look_up.search(Sought(queue="work", fate="refused"), 10)) == [1]


async def test_one_way_once(ledger: LedgerFiles, look_up: LookUp) -> None:
    """A message and its dead letter that both fit are one way, with what the message is called."""
    _publish(ledger, uid(1))
    _fate(ledger, "dead_lettered", uid(1), at=5 * MS, successors=[(uid(7), uid(7))])
    ledger.stage("routed", uid(7), at=6 * MS, virtual_host="/", routing_key="k", queue="parked")
    ledger.named("order-1", uid(1))
    ledger.file()
    [journey] = (await look_up.search(Sought(key="k"), 10)).journeys
    assert {message.uid for message in journey.messages} == {uid(1), uid(7)}
    assert [(name.kind, name.id) for name in journey.messages[0].names] == [("message_id", "order-1")]


async def test_it_takes_too_long(ledger: LedgerFiles, look_up: LookUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found in the time that there is is told, with a word about the hours that were not searched."""
    monkeypatch.setattr(answers, "_SECONDS", 0)
    _publish(ledger, uid(1))
    ledger.file()
    trace = await look_up.search(Sought(queue="work"), 10)
    assert (trace.journeys, trace.cut_short, trace.more) == ([], True, True)


@pytest.mark.parametrize("sought", [Sought(), Sought(fate="eaten"), Sought(queue="q" * 256)])
async def test_bad_questions(look_up: LookUp, sought: Sought) -> None:
    """Nothing to go by, a fate that there is not, and a name that nothing can have are refused."""
    with pytest.raises(SyntaxFault):
        await look_up.search(sought, 10)


async def test_hostile_patterns(ledger: LedgerFiles, look_up: LookUp) -> None:
    """A pattern is a value, with any content."""
    _publish(ledger, uid(1), queue="'; drop table x; --")
    ledger.file()
    assert _found(await look_up.search(Sought(queue="'; drop table x; --"), 10)) == [1]
    assert _found(await look_up.search(Sought(queue="' or 1=1 --"), 10)) == []
