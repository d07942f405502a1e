from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Sequence
from itertools import count

import pytest
from rich.console import Console

from services.cli import ends, ledger
from services.cli import following as picking
from services.cli.following import Following
from services.cli.ledger import text
from services.common.bus.follow import BusMessage
from services.common.ledger.encoding import Draft, Identified, Row, ranges_of
from services.common.ledger.place import LedgerPlace
from services.common.question import Sought
from services.common.trace import Step
from services.rpc.ledger_pb2 import (
    DEAD_LETTERED,
    DELIVERED,
    RECEIVED,
    REFUSED,
    ROUTED,
    SETTLED,
    Connection,
    LedgerBatch,
)
from services.rpc.ledger_pb2 import SENT as SENT_STAGE

TAKEN = LedgerPlace(virtual_host="/", exchange="e", routing_key="k")
WORK = LedgerPlace(virtual_host="/", queue="work", partition=7, epoch=3, consumer="[c1]", attempt=2)
OTHER = LedgerPlace(virtual_host="/", queue="other")
_ROWS = count(1, 1000)  # numbers of rows, which no two batches share
ELSEWHERE = LedgerPlace(virtual_host="b", queue="work")


def _row(stage: int, place: LedgerPlace, uids: Sequence[int], outcome: str = "", reason: str = "") -> Row:
    return Row(1_787_313_600_000_000, stage, place, uids, outcome, reason, 0, None)


def _payload(*rows: Row, identified: Sequence[Identified] = ()) -> bytes:
    draft = Draft(LedgerBatch(service="queue", instance="queue-1"), next(_ROWS))
    draft.add(rows, list(map(ranges_of, rows)))
    draft.identify(identified)
    return draft.sealed().payload


def _named(*names: str) -> Identified:
    """The messages 1, 2, … with message ids: flags, then a short string (AMQP 0-9-1, 4.2.6.1)."""
    properties = [b"\x00\x80" + bytes([len(name)]) + name.encode() for name in names]
    return Identified("amqp-0-9", range(1, len(names) + 1), properties)


def test_one_queue() -> None:
    """Of all that is told, the stages of the queue are picked, of its own virtual host alone."""
    following = Following(Sought("/", "work"))
    lines = list(
        following.lines(
            _payload(
                _row(ROUTED, OTHER, [1, 5]),
                _row(DELIVERED, WORK, [1, 2, 3, 9]),
                _row(ROUTED, ELSEWHERE, [4]),
                _row(SETTLED, WORK, [2], "rejected"),
            )
        )
    )
    assert [(line.stage, line.uids, line.count) for line in lines] == [
        ("delivered", [(1, 3), (9, 9)], 4),
        ("settled", [(2, 2)], 1),
    ]
    assert (lines[0].partition, lines[0].epoch, lines[0].attempt, lines[1].outcome) == (7, 3, 2, "rejected")


def test_what_is_told_again() -> None:
    """A process that the bus did not answer in time tells its rows again: each is one line."""
    following = Following(Sought("/", "work"))
    payloads = [_payload(_row(DELIVERED, WORK, [uid])) for uid in (1, 2)]
    heard = [line.uids for payload in (*payloads, *payloads) for line in following.lines(payload)]
    assert heard == [[(1, 1)], [(2, 2)]]


def test_ids() -> None:
    """Messages are called by the ids that were told when they were received."""
    following = Following(Sought("/", "work"))
    received = _payload(_row(RECEIVED, TAKEN, [1, 2]), identified=[_named("order-1", "order-2")])
    assert list(following.lines(received)) == []
    [line] = following.lines(_payload(_row(DELIVERED, WORK, [1, 2, 3])))
    assert following.ids_of(line) == ["order-1", "order-2"]


def test_one_id_for_all() -> None:
    """Properties that are told once are those of every message."""
    following = Following(Sought("/", "work"))
    shared = Identified("amqp-0-9", [1, 2], _named("same").properties)
    list(following.lines(_payload(_row(RECEIVED, TAKEN, [1, 2]), identified=[shared])))
    [line] = following.lines(_payload(_row(DELIVERED, WORK, [2])))
    assert following.ids_of(line) == ["same"]


def test_ids_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many ids are remembered: the newest."""
    monkeypatch.setattr(picking, "_REMEMBERED", 2)
    following = Following(Sought("/", "work"))
    list(following.lines(_payload(_row(RECEIVED, TAKEN, [1]), identified=[_named("a", "b", "c")])))
    [line] = following.lines(_payload(_row(DELIVERED, WORK, [1, 2, 3])))
    assert following.ids_of(line) == ["b", "c"]


def test_text() -> None:
    """A line has the stage, the messages, the outcome and the process; names are shown as they are."""
    following = Following(Sought("/", "work"))
    names = ["[red]", "b", "c", "d"]
    list(following.lines(_payload(_row(RECEIVED, TAKEN, [1]), identified=[_named(*names)])))
    [many, one] = following.lines(
        _payload(_row(DELIVERED, WORK, [1, 2, 3, 4]), _row(SETTLED, OTHER._replace(queue="work"), [9]))
    )
    assert (
        text(many, following.ids_of(many)).plain[12:]
        == "  delivered      1 and 3 more  [red] b c and 1 more  again, consumer [c1]  queue-1"
    )
    assert text(one, []).plain[12:] == "  settled        9  queue-1"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What a bus tells; it ends then, as no real one does."""
    told: list[bytes] = []

    async def follow(_address: str, subject: str) -> AsyncIterator[BusMessage]:
        for payload in told:
            yield BusMessage(subject, payload)

    monkeypatch.setattr(ledger, "follow", follow)
    return told


@pytest.mark.parametrize("as_json", [True, False])
async def test_show(told: list[bytes], as_json: bool) -> None:
    """What cannot be read is passed over; for each batch and stage there is a line, or an object."""
    unknown = Identified("of-tomorrow", [1], [b""])
    broken = Identified("amqp-0-9", [1], [b"\xff\xff"])
    told += [b"\xff", LedgerBatch(ranges=[1], place=[5]).SerializeToString()]
    told += [_payload(_row(DELIVERED, WORK, [1]), identified=[each]) for each in (unknown, broken)]
    told.append(_payload(_row(DELIVERED, WORK, [7, 8])))
    written = io.StringIO()
    await ledger.show("", Following(Sought("/", "work")), Console(file=written, width=200), as_json=as_json)
    first, _, last = written.getvalue().splitlines()
    if as_json:
        assert (json.loads(first)["ids"], json.loads(last)["uids"]) == ([], [[7, 8]])
    else:
        assert "7 and 1 more" in last


async def test_the_same_fields_as_of_a_trace(told: list[bytes]) -> None:
    """A line has all that a step of a trace has, under the same names: what a program reads of one it reads of both."""
    place = LedgerPlace(
        "/", "e", "eu.new", "work", protocol="AMQP 0-9-1", connection="6.2", client="desk", consumer="c1"
    )
    told.append(_introduced(_payload(_row(SENT_STAGE, place, [7, 8])), ("6.2", "bob", "10.0.0.2:6000")))
    written = io.StringIO()
    await ledger.show("", Following(Sought("/", "work")), Console(file=written, width=200), as_json=True)
    line = json.loads(written.getvalue())
    assert line.keys() == {*Step.model_fields, "uids", "ids", "number"}
    said = {
        name: line[name] for name in ("virtual_host", "exchange", "routing_key", "protocol", "connection", "client")
    }
    assert said == {name: getattr(place, name) for name in said}
    assert (line["user"], line["peer"], line["partition"], line["epoch"]) == ("bob", "10.0.0.2:6000", None, None)


def test_what_dead_letters_went_on_as() -> None:
    """Each message's successor is told, also of a part of them."""
    following = Following(Sought("/", "work", client="shop"))
    dead = _row(DEAD_LETTERED, WORK._replace(target="dlx"), [1, 2, 3, 9])._replace(successors=range(101, 105))
    [line] = following.lines(_payload(dead))
    assert (line.target, line.successors) == ("dlx", [101, 102, 103, 104])
    list(following.lines(_payload(_row(RECEIVED, PUBLISHED, [2, 9]))))
    fitting = following.fitting(line)
    assert fitting
    assert (fitting.uids, fitting.successors) == ([(2, 2), (9, 9)], [102, 104])


async def test_sorted(told: list[bytes]) -> None:
    """What services tell one after the other is written in the order in which it happened, with ids told later."""
    late = _row(SETTLED, WORK, [1], "accepted")
    told += [
        _payload(late._replace(time_us=late.time_us + 5)),
        _payload(_row(DELIVERED, WORK, [1]), identified=[_named("order-1")]),
    ]
    written = io.StringIO()
    await ledger.show("", Following(Sought("/", "work")), Console(file=written, width=200), as_json=True)
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [(line["stage"], line["ids"]) for line in lines] == [("delivered", ["order-1"]), ("settled", ["order-1"])]


async def test_written_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are written soon, whether others follow or not."""
    monkeypatch.setattr(ledger, "_HELD", 0.01)
    written = io.StringIO()

    async def follow(_address: str, subject: str) -> AsyncIterator[BusMessage]:
        yield BusMessage(subject, _payload(_row(DELIVERED, WORK, [7])))
        async with asyncio.timeout(5):
            while not written.getvalue():
                await asyncio.sleep(0.01)

    monkeypatch.setattr(ledger, "follow", follow)
    await ledger.show("", Following(Sought("/", "work")), Console(file=written, width=200), as_json=False)
    assert written.getvalue().count("\n") == 1


async def test_ends_at_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes leave of the bus while the loop still runs, not among all tasks that are cancelled at the loop's end."""
    followed, left = asyncio.Event(), asyncio.Event()

    async def follow(_address: str, _subject: str) -> AsyncIterator[BusMessage]:
        try:
            followed.set()
            await asyncio.Event().wait()
            yield BusMessage("", b"")
        finally:
            await asyncio.sleep(0)
            left.set()

    monkeypatch.setattr(ledger, "follow", follow)
    showing = asyncio.create_task(
        ledger.show("", Following(Sought("/", "work")), Console(file=io.StringIO()), as_json=False)
    )
    await followed.wait()
    showing.cancel()
    await asyncio.gather(showing, return_exceptions=True)
    assert left.is_set()


PUBLISHED = LedgerPlace(virtual_host="/", exchange="e", routing_key="eu.new", client="shop", connection="5.1")
SENT = LedgerPlace(virtual_host="/", queue="work", connection="6.2", client="desk", consumer="[c1]")


@pytest.mark.parametrize(
    ("sought", "fitting"),
    [
        (Sought("/", "work"), [(1, 4)]),
        (Sought("/", "w*", client="sho?"), [(1, 1), (2, 2)]),
        (Sought("/", "work", client="5.1", key="eu.*"), [(1, 1), (2, 2)]),
        (Sought("/", "work", key="us.*"), None),
        (Sought("/", "work", consumer="desk"), [(2, 2), (3, 3)]),
        (Sought("/", "work", consumer="6.2", client="shop"), [(2, 2)]),
        (Sought("/", "work", fate="rejected"), [(1, 4)]),
        (Sought("/", "work", fate="accepted"), None),
        (Sought("/", "wor"), None),
    ],
)
def test_fitting(sought: Sought, fitting: list[tuple[int, int]] | None) -> None:
    """Of the stages in a queue, those of matching messages are shown, also rows of other processes."""
    following = Following(sought)
    here = LedgerPlace(virtual_host="/", queue="work")
    lines = list(following.lines(_payload(_row(SETTLED, here, [1, 2, 3, 4], "rejected"))))
    list(following.lines(_payload(_row(RECEIVED, PUBLISHED, [1, 2]))))
    list(following.lines(_payload(_row(SENT_STAGE, SENT, [2, 3]))))
    [line] = map(following.fitting, lines) if lines else [None]
    assert (line and line.uids) == fitting


LETTER = LedgerPlace(virtual_host="/", queue="parked", routing_key="dead")


@pytest.mark.parametrize(
    ("sought", "told"),
    [
        (Sought("/", "parked", client="shop"), [(12, 12), (21, 21)]),
        (Sought("/", "parked", client="crm"), [(13, 13)]),
        (Sought("/", "parked", client="shop", key="dea?"), [(12, 12), (21, 21)]),
        (Sought("/", "parked", client="shop", key="eu.*"), []),
        (Sought("/", "parked", client="nobody"), []),
    ],
)
def test_dead_letters(sought: Sought, told: list[tuple[int, int]]) -> None:
    """They are of who published their first message, also where that is told later than what came of it."""
    following = Following(sought)
    here = LedgerPlace(virtual_host="/", queue="work")
    payload = _payload(
        _row(DEAD_LETTERED, here, [1, 2, 3])._replace(successors=range(11, 14)),
        _row(DEAD_LETTERED, here, [11])._replace(successors=range(21, 22)),
        _row(ROUTED, LETTER, [12, 13, 21]), _row(SETTLED, LETTER, [12, 13, 21, 22], "accepted"),
    )  # fmt: skip
    lines = list(following.lines(payload))
    list(
        following.lines(
            _payload(
                _row(RECEIVED, PUBLISHED, [1, 2]),
                _row(RECEIVED, PUBLISHED._replace(connection="5.2", client="crm"), [3]),
            )
        )
    )
    found = {line.stage: line.uids for each in lines if (line := following.fitting(each))}
    assert found.get("settled", []) == told


@pytest.mark.parametrize(("queue", "told"), [("work", [(2, 2)]), ("w*", [(2, 2)]), ("other", [(1, 1)]), ("none", None)])
def test_refused(queue: str, told: list[tuple[int, int]] | None) -> None:
    """What was refused is in no queue: where it was to go is what it was routed to, as in a search."""
    following = Following(Sought("/", queue, fate="refused"))
    to = [LedgerPlace(virtual_host="/", exchange="e", queue=name) for name in ("other", "work")]
    rows = [_row(ROUTED, place, [uid]) for uid, place in enumerate(to, 1)]
    lines = list(following.lines(_payload(*rows, _row(REFUSED, TAKEN, [1, 2], reason="overflow"))))
    found = [fits for line in lines if (fits := following.fitting(line))]
    assert [line.uids for line in found] == ([told] if told else [])


def _introduced(payload: bytes, *ends: tuple[str, str, str]) -> bytes:
    """The batch with the peers of connections."""
    batch = LedgerBatch.FromString(payload)
    for connection, user, peer in ends:
        batch.connections.add(virtual_host="/", connection=connection, user=user, peer=peer)
    return batch.SerializeToString()


WHO = [
    (Sought("/", "work", client="alice"), [(1, 1), (2, 2)]),
    (Sought("/", "work", client="10.0.0.1"), [(1, 1), (2, 2)]),
    (Sought("/", "work", client="10.0.*:5000"), [(1, 1), (2, 2)]),
    (Sought("/", "work", consumer="bo?"), [(2, 2), (3, 3)]),
    (Sought("/", "work", consumer="10.0.0.2:6000", client="alice"), [(2, 2)]),
    (Sought("/", "work", client="bob"), None),
    (Sought("/", "work", client="10.0.0"), None),
    (Sought("b", "work", client="alice"), None),
]


@pytest.mark.parametrize(("sought", "fitting"), WHO)
def test_users_and_addresses_that_are_told(sought: Sought, fitting: list[tuple[int, int]] | None) -> None:
    """Publishers and consumers match by user and by address, which come beside the first row of an hour."""
    following = Following(sought)
    here = LedgerPlace(virtual_host="/", queue="work")
    lines = list(following.lines(_payload(_row(SETTLED, here, [1, 2, 3, 4], "accepted"))))
    taken = _payload(_row(RECEIVED, PUBLISHED, [1, 2]))
    list(following.lines(_introduced(taken, ("5.1", "alice", "10.0.0.1:5000"))))
    list(following.lines(_introduced(_payload(_row(SENT_STAGE, OTHER, [9])), ("6.2", "bob", "10.0.0.2:6000"))))
    list(following.lines(_payload(_row(SENT_STAGE, SENT, [2, 3]))))
    [line] = map(following.fitting, lines) if lines else [None]
    assert (line and line.uids) == fitting


async def test_users_and_addresses_of_before(told: list[bytes]) -> None:
    """For older connections their peers are asked for, before anything that came meanwhile is read."""
    told += [
        _payload(_row(RECEIVED, PUBLISHED, [1]), _row(SENT_STAGE, SENT, [1])),
        _payload(_row(RECEIVED, PUBLISHED._replace(connection="5.7"), [2]), _row(SENT_STAGE, SENT, [2])),
    ]
    following = Following(Sought("/", "work", client="alice", consumer="10.0.0.*"))

    async def known(virtual_host: str, who: str) -> list[str]:
        return {("/", "alice"): ["5.1", "5.2"], ("/", "10.0.0.*"): ["6.2"]}[virtual_host, who]

    async def ready() -> None:
        await asyncio.sleep(0.01)
        await following.ask(known)

    written = io.StringIO()
    await ledger.show("", following, Console(file=written, width=200), as_json=True, ready=ready)
    assert [json.loads(line)["uids"] for line in written.getvalue().splitlines()] == [[[1, 1]]]


def test_ends_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many connections are remembered: the newest."""
    monkeypatch.setattr(ends, "_MOST", 2)
    who = ends.Ends("/", "alice")
    for number in (1, 2, 3):
        who.hear(Connection(virtual_host="/", connection=f"5.{number}", user="alice", peer="10.0.0.1:5000"))
    assert [who.fit(f"5.{number}", "shop") for number in (1, 2, 3)] == [False, True, True]


def test_fitting_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of messages that fit only so many are remembered: the newest."""
    monkeypatch.setattr(picking, "_FITTING", 2)
    following = Following(Sought("/", "work", client="shop"))
    list(following.lines(_payload(_row(RECEIVED, PUBLISHED, [1, 2, 3]))))
    [line] = following.lines(_payload(_row(DELIVERED, WORK, [1, 2, 3])))
    fitting = following.fitting(line)
    assert fitting
    assert (fitting.uids, fitting.count) == ([(2, 2), (3, 3)], 2)
