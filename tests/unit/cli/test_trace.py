from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from services.cli.durations import duration
from services.cli.steps import detail
from services.cli.trace import show
from services.common.trace import MOST_GAPS, Copy, Gap, Journey, Match, Message, Name, Span, Step, Trace, nothing

NOON = 1_787_313_600_000_000


def _step(stage: str, at: int, wait: int = 0, **facts: Any) -> Step:
    texts = ("virtual_host", "exchange", "routing_key", "queue", "protocol", "connection", "client", "consumer")
    blank = {
        **dict.fromkeys((*texts, "outcome", "reason", "target"), ""),
        "service": "queue",
        "instance": "queue-1-aa",
        "partition": None,
        "epoch": None,
        "attempt": 0,
        "count": 1,
        "bytes": 0,
        "successors": [],
    }
    return Step(time_us=NOON + at, wait_us=wait, stage=stage, **{**blank, **facts})


def _copy(queue: str, state: str, *, ended: bool, outcome: str = "", reason: str = "") -> Copy:
    return Copy(virtual_host="/", queue=queue, state=state, outcome=outcome, reason=reason, ended=ended)


def _message(uid: int, *steps: Step, predecessor: int | None = None, copies: tuple[Copy, ...] = ()) -> Message:
    ended = all(copy.ended for copy in copies)
    return Message(uid=uid, predecessor=predecessor, steps=list(steps), copies=list(copies), ended=ended)


def _journey(*messages: Message, gaps: tuple[Gap, ...] = (), cut_short: bool = False, uid: int = 7) -> Journey:
    match = Match(uid=uid, kind="message_id", time_us=NOON)
    return Journey(match=match, messages=list(messages), gaps=list(gaps), cut_short=cut_short)


def _shown(*journeys: Journey, every: bool = False, more: bool = False, width: int = 160) -> list[str]:
    console = Console(width=width, file=io.StringIO(), record=True)
    show(Trace(id="x", journeys=list(journeys), more=more), console, every=every)
    return console.export_text().splitlines()


RECEIVED = _step(
    "received", 0, exchange="orders", routing_key="eu", client="shop", protocol="amqp-0-9-1", instance="gateway-1-bb"
)
REJECTED = _message(
    7,
    RECEIVED,
    _step("delivered", 10_000, 10_000, virtual_host="/", queue="work", partition=7, epoch=3, consumer="c1", count=3),
    _step(
        "dead_lettered",
        30_000,
        20_000,
        virtual_host="/",
        queue="work",
        reason="rejected",
        target="dlx",
        successors=[9],
    ),
    copies=(_copy("work", "dead_lettered", ended=True, reason="rejected"),),
)
FAILED = _message(
    9,
    _step("enqueued", 40_000, queue="failed"),
    predecessor=7,
    copies=(_copy("failed", "enqueued", ended=False),),
)


def test_waterfall() -> None:
    """Stages come with when, how long after the one before, a bar for the wait, where, who, and how."""
    title, *lines = _shown(_journey(REJECTED))[:4]
    assert title.startswith("7, published ")
    assert title.endswith(" to exchange 'orders' with key 'eu' by shop over amqp-0-9-1")
    assert [line.split() for line in lines] == [
        ["0", "µs", "▏", "received", "gateway-1-bb"],
        ["10.0", "ms", "+10.0", "ms", "████████", "delivered", "work", "partition", "7", "epoch", "3", "queue-1-aa",
         "consumer", "c1,", "with", "2", "others"],
        ["30.0", "ms", "+20.0", "ms", "███████████████▉", "dead_lettered", "work", "queue-1-aa", "rejected,", "to",
         "'dlx'"],
    ]  # fmt: skip
    assert len({line.index("queue-1-aa") for line in lines[1:]}) == 1
    assert lines[2].index("█") - lines[1].index("█") == 8


def test_dead_lettering() -> None:
    """What the message went on as stands below it, indented, and is what its end is told of."""
    lines = _shown(_journey(REJECTED, FAILED))
    assert "└ 9, dead-lettered from queue 'work' to exchange 'dlx': rejected" in lines
    assert lines[-1] == "not ended: enqueued in queue 'failed'"
    assert not any(line.startswith("ended") for line in lines)
    stage = {line.split()[-3 if "queue-1" in line else -2]: line for line in lines[1:] if "0" in line}
    assert any("  enqueued" in line for line in stage.values())


def test_deep_dead_lettering() -> None:
    """A way of a hundred messages is shown whole, each below the one before."""
    messages = [_message(0, RECEIVED)]
    messages += [_message(number, _step("enqueued", number), predecessor=number - 1) for number in range(1, 100)]
    lines = _shown(_journey(*messages, cut_short=True))
    assert [int(line.split()[1][:-1]) for line in lines if "└" in line] == list(range(1, 100))
    assert lines[-1] == "it goes on; a look-up follows no further"


def test_contradicting_messages() -> None:
    """Messages that claim to come from each other are shown once."""
    there = _message(1, _step("routed", 0), predecessor=2)
    back = _message(2, _step("routed", 1), predecessor=1)
    lines = _shown(_journey(there, back))
    assert len([line for line in lines if "whose beginning is not on record" in line]) == 2


@pytest.mark.parametrize(
    ("steps", "copies", "end"),
    [
        ([_step("returned", 1, reason="no_route")], (), "ended: returned (no_route)"),
        ([_step("refused", 1, reason="overflow")], (), "ended: refused (overflow)"),
        ([_step("rolled_back", 1)], (), "ended: its transaction was rolled back"),
        ([], (_copy("q", "settled", ended=True, outcome="accepted"),), "ended: accepted in queue 'q'"),
        ([], (_copy("q", "dropped", ended=True, reason="maxlen"),), "ended: dropped in queue 'q' (maxlen)"),
        ([], (_copy("q", "requeued", ended=False, reason="released"),), "not ended: requeued in queue 'q' (released)"),
    ],
)
def test_ends(steps: list[Step], copies: tuple[Copy, ...], end: str) -> None:
    """The last line says what has become of the message."""
    assert _shown(_journey(_message(7, RECEIVED, *steps, copies=copies)))[-1] == end


def test_a_damaged_file_is_to_blame() -> None:
    """It is named in what became of the message."""
    copy = _copy("q", "enqueued", ended=False).model_copy(update={"fate": "unknown", "unread": "stages/a.parquet"})
    assert _shown(_journey(_message(7, RECEIVED, copies=(copy,))))[-1] == (
        "unknown: enqueued in queue 'q'; what became of it then may be in stages/a.parquet of the ledger, which cannot "
        "be read"
    )


@pytest.mark.parametrize("stage", ["refused", "rolled_back", "returned"])
def test_never_came_into_its_queue(stage: str) -> None:
    """How the message ended is said once, of the message."""
    steps = _step("routed", 1, virtual_host="/", queue="q"), _step(stage, 2)
    journey = _journey(_message(7, RECEIVED, *steps, copies=(_copy("q", stage, ended=True),)))
    lines = _shown(journey)
    assert [line.startswith(("ended", "not ended")) for line in lines[-2:]] == [False, True]


def test_a_full_queue() -> None:
    """What a queue refused for want of room, and its publisher was told, ended once."""
    copies = (_copy("q", "dropped", ended=True, reason="maxlen"),)
    refused = [RECEIVED, _step("dropped", 1, queue="q", virtual_host="/"), _step("refused", 2, reason="overflow")]
    lines = _shown(_journey(_message(7, *refused, copies=copies)))
    assert [line for line in lines if line.startswith("ended")] == ["ended: refused (overflow)"]
    told = _shown(_journey(_message(7, *refused[:2], copies=copies)))
    assert told[-1] == "ended: dropped in queue 'q' (maxlen)"


SILENT = Gap(
    time_us=NOON, service="queue", instance="queue-1", first_row=1, last_row=1, count=-1, reason="silent", since_us=NOON
)
BLAMED = "queue-1 (silent since 2026-08-21 12:00:00Z, noticed 2026-08-21 12:00:00Z)"


@pytest.mark.parametrize(
    ("fate", "gap", "end"),
    [
        ("waiting", None, "not ended: it waits in queue 'q'"),
        ("unsettled", None, "not ended: a consumer of queue 'q' has it, and has not settled it"),
        ("in_flight", None, "not ended: enqueued in queue 'q', too short ago to say more"),
        ("lost", None, "lost: it was confirmed, and never came into queue 'q'"),
        ("lost (persisted)", None, "lost (persisted): it was on disk in queue 'q', and the next owner did not have it"),
        (
            "lost (transient)",
            SILENT,
            f"lost (transient): queue 'q' had it in memory only, of {BLAMED}; the next owner did not have it",
        ),
        (
            "unknown",
            SILENT,
            f"unknown: enqueued in queue 'q'; what became of it then may be what is missing of {BLAMED}",
        ),
        ("of a later release", None, "not ended: enqueued in queue 'q'"),
    ],
)
def test_fates(fate: str, gap: Gap | None, end: str) -> None:
    """Of a copy without an end on record, what is known of it is said, and which gap is to blame."""
    copy = _copy("q", "enqueued", ended=False).model_copy(update={"fate": fate, "gap": gap})
    gaps = (gap,) if gap else ()  # which is named once
    assert _shown(_journey(_message(7, RECEIVED, copies=(copy,)), gaps=gaps))[-1] == end


def test_an_end_that_may_have_gone_on() -> None:
    """Where its owner died right after it, a dead letter may be missing."""
    copy = _copy("q", "expired", ended=True).model_copy(update={"gap": SILENT})
    end = f"ended: expired in queue 'q', and what came after it may be what is missing of {BLAMED}"
    assert _shown(_journey(_message(7, RECEIVED, copies=(copy,)), gaps=(SILENT,)))[-1] == end


def test_nothing_on_record() -> None:
    """Where nothing is found, the gaps are named in which it may have been received."""
    assert nothing("x", Trace(id="x", journeys=[], more=False)) == "nothing is on record of 'x'"
    other = SILENT.model_copy(update={"instance": "queue-2", "since_us": None})
    two = Trace(id="x", journeys=[], more=False, gaps=[SILENT, other])
    each = f"{BLAMED} or queue-2 (silent, noticed 2026-08-21 12:00:00Z)"
    assert nothing("x", two) == f"nothing is on record of 'x'; it may be what is missing of {each}"
    many = two.model_copy(update={"gaps": two.gaps * 4})
    assert nothing("x", many).endswith(" or of 5 that were noticed before")
    most = two.model_copy(update={"gaps": two.gaps * (MOST_GAPS // 2)})  # there may be others
    assert nothing("x", most).endswith(" or of 47 or more that were noticed before")
    died = Trace(id="x", journeys=[], more=False, gone=["gateway-1", "gateway-2"])
    missing = "it may be what is missing of gateway-1 and gateway-2, which died just now"
    assert nothing("x", died) == f"nothing is on record of 'x'; {missing}"


def test_gaps() -> None:
    """Where rows are missing, that is said, with how many where it is known."""
    known = Gap(time_us=NOON, service="queue", instance="queue-1", first_row=1, last_row=1, count=1, reason="given_up")
    unknown = known.model_copy(update={"count": -1, "reason": "silent"})
    first, second = _shown(_journey(_message(7, RECEIVED), gaps=(known, unknown)))[-2:]
    assert first.startswith("the record is not whole here: 1 row of queue-1 missing (given_up), noticed ")
    assert second.startswith("the record is not whole here: rows of queue-1 missing (silent), noticed ")


def test_nothing_but_an_id() -> None:
    """A message of which only the id is on record is told as such."""
    assert _shown(_journey()) == ["7: it was received, and nothing more is on record"]


def test_several() -> None:
    """Messages of one id are listed, with what has become of each; all are shown when that is asked for."""
    settled = _message(8, RECEIVED, copies=(_copy("q", "settled", ended=True, outcome="accepted"),))
    journeys = [_journey(settled, uid=8), _journey(REJECTED, FAILED), _journey(uid=9)]
    lines = _shown(*journeys, more=True)
    assert [line.split()[0] for line in lines[1:4]] == ["8", "7", "9"]
    assert "ended: accepted in queue 'q'" in lines[1]
    assert "not ended: enqueued in queue 'failed'" in lines[2]
    assert lines[4] == "3 messages have this id; there are older ones: ask for a uid, or for --all"
    every = _shown(*journeys, every=True, more=True)
    assert len([line for line in every if "published" in line]) == 2
    assert every[-1] == "more messages have this id: --limit tells more of them"


def test_found() -> None:
    """What was found by what it has in common is listed by what it is called, with what was passed over."""
    message = _message(8, RECEIVED).model_copy(update={"names": [Name(kind="message_id", id="order-8")]})
    found = [
        _journey(message).model_copy(update={"match": Match(uid=8, kind="found", time_us=NOON)}),
        _journey(REJECTED, FAILED),
    ]
    trace = Trace(id="", journeys=found, more=True, cut_short=True, damaged=["stages/a.parquet"])
    console = Console(width=160, file=io.StringIO(), record=True)
    show(trace, console, every=False)
    lines = console.export_text().splitlines()
    assert lines[1].split()[:2] == ["8", "order-8"]
    assert lines[-3:] == [
        "2 messages fit; there are older ones: ask for a uid, or for --all",
        "older hours were not searched, it takes too long: --since and --until bound it",
        "passed over, for it is damaged: stages/a.parquet of the ledger",
    ]


@pytest.mark.parametrize(
    ("step", "who"),
    [
        (
            _step("sent", 1, consumer="c1", client="desk", connection="6.2", user="alice", peer="10.0.0.7:4711"),
            "consumer c1 by desk (user alice, 10.0.0.7:4711) on connection 6.2",
        ),
        (
            _step("sent", 1, client="alice", connection="6.2", user="alice", peer="10.0.0.7:4711"),
            "basic.get by alice (10.0.0.7:4711) on connection 6.2",
        ),
        (_step("sent", 1, consumer="c1", client="desk", connection="6.2"), "consumer c1 by desk on connection 6.2"),
        (_step("sent", 1, client="desk", connection="6.2"), "basic.get by desk on connection 6.2"),
        (_step("delivered", 1, consumer="c1", connection="6.2"), "consumer c1"),
        (_step("received", 1, client="desk", connection="6.2"), ""),
    ],
)
def test_who_got_it(step: Step, who: str) -> None:
    """The consumer of a message is shown with all that is on record of it, also after a basic.get."""
    assert detail(step) == who


def test_markup_is_text() -> None:
    """What clients name is shown as it is, not obeyed."""
    step = RECEIVED.model_copy(update={"exchange": "[red]x[/red]", "client": "[bold"})
    assert "exchange '[red]x[/red]' with key 'eu' by [bold " in _shown(_journey(_message(7, step)))[0]


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0 µs"), (999, "999 µs"), (1_500, "1.5 ms"), (2_410_000, "2.41 s"), (192_000_000, "3 m 12 s"),
        (7_380_000_000, "2 h 03 m"), (100_800_000_000, "1 d 04 h"), (-1_500, "-1.5 ms"),
    ],
)  # fmt: skip
def test_durations(microseconds: int, text: str) -> None:
    """Spans of time are told in the units in which they are read."""
    assert duration(microseconds) == text


def test_what_a_restore_has_undone_and_what_is_not_filed() -> None:
    """What the record cannot show of a message is said below its way."""
    console = Console(width=160, file=io.StringIO(), record=True)
    trace = Trace(id="x", journeys=[_journey(REJECTED)], more=False, restored="restored at noon", trouble="a full disk")
    show(trace, console, every=False)
    assert console.export_text().splitlines()[-2:] == [
        "some of it happened between a backup and its restore: restored at noon",
        "the record is not filed at the moment: a full disk",
    ]


def _span(number: int, at: int, lasts: int, parent: int | None = None, **facts: Any) -> Span:
    blank = {"trace_id": "t", "kind": "internal", "service": "shop", "broker": False, "failed": False, "attributes": {}}
    ids = {"span_id": str(number), "parent_id": parent and str(parent), "name": f"span-{number}"}
    return Span(**{**blank, **ids, **facts}, start_us=NOON + at, end_us=NOON + at + lasts)


def test_spans_of_applications() -> None:
    """They stand below the message's way, on one scale with it, each below the one that it is a part of."""
    spans = [
        _span(1, -1_000, 21_000),
        _span(2, 0, 500, parent=1, broker=True),
        _span(3, 11_000, 5_000, parent=2, service="warehouse", failed=True),
        _span(4, 12_000, 0, parent=5),
        _span(5, 12_000, 0, parent=4),
    ]
    linked = _journey(REJECTED).model_copy(update={"spans": spans, "jaeger": ["http://j/trace/t"]})
    lines = _shown(linked)
    below = lines[lines.index("spans of applications, by their own clocks") + 1 :]
    assert [line.split()[-1] for line in below[:2]] == ["shop", "failed"]
    assert "  span-1" in below[0]
    assert "    span-3  warehouse" in below[1]
    assert below[4] == "in Jaeger: http://j/trace/t"
    assert lines[1].split()[:2] == ["1.0", "ms"]


def test_not_all_spans() -> None:
    """It is said where not all files of spans were searched."""
    console = Console(width=160, file=io.StringIO(), record=True)
    show(Trace(id="x", journeys=[_journey(REJECTED)], more=False, spans_cut_short=True), console, every=False)
    assert console.export_text().splitlines()[-1] == "not all files of spans were searched, it takes too long"


def test_letters_again() -> None:
    """A dead letter that no queue took, and that goes on again, is one that says so."""
    dead = _step("dead_lettered", 900, virtual_host="/", queue="a", reason="expired", target="dlx", successors=[8])
    again = _step("copied", 950, virtual_host="/", queue="a", reason="expired", target="dlx", successors=[9])
    copy = _copy("a", "dead_lettered", ended=True, reason="expired")
    lines = _shown(
        _journey(_message(7, RECEIVED, dead, again, copies=(copy,)), _message(9, _step("enqueued", 960), predecessor=7))
    )
    assert sum(" dead_lettered " in line for line in lines) == 2
    assert any(" dead_lettered " in line and line.endswith("expired, to 'dlx', again") for line in lines)
    assert any(line.startswith("└ 9, dead-lettered from queue 'a'") for line in lines)


def test_by_hand() -> None:
    """Where a message was moved and copied to is said in these words; what was copied has not ended."""
    moved = _step("dead_lettered", 900, virtual_host="/", queue="a", reason="moved", target="b", successors=[8])
    copied = _step("copied", 950, virtual_host="/", queue="b", reason="copied", target="c", successors=[9])
    waits = {"virtual_host": "/", "outcome": "", "reason": "", "ended": False, "fate": "waiting"}
    lines = _shown(
        _journey(
            _message(7, RECEIVED, moved, copies=(_copy("a", "dead_lettered", ended=True, reason="moved"),)),
            _message(8, copied, predecessor=7, copies=(Copy(queue="b", state="enqueued", **waits),)),
            _message(9, _step("enqueued", 960), predecessor=8),
        )
    )
    assert any(" moved " in line and line.endswith("to queue 'b'") for line in lines)
    assert any(" copied " in line and line.endswith("to queue 'c'") for line in lines)
    assert "└ 8, moved from queue 'a' to queue 'b'" in lines
    assert "  └ 9, copied from queue 'b' to queue 'c'" in lines
    assert lines[-1] == "not ended: it waits in queue 'b'"
    assert not any("dead" in line for line in lines)
