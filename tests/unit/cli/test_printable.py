from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest
from rich.console import Console

from services.cli import events, ledger, partitions, route, trace, tracing_shown
from services.common.bus.event import Event
from services.common.bus.facts import LeaseAcquired
from services.common.clients.partition_table import Owner
from services.common.clients.placement import Placed
from services.common.dry_run import DryRun, Hop, Visit
from services.common.printable import printable, printable_json, printable_lines
from services.common.telemetry.rules import Rule
from services.common.telemetry.status import Status
from services.common.trace import Copy, Gap, Journey, Match, Message, Step, Trace

# What a console takes for the end of a colour and for a colour, a line's end, a clear screen, a title that is set by
# one character that UTF-8 has for "escape [", and text that is written from right to left.
HOSTILE = "[/x][red]:bomb:\n\x1b[2J\x07\x9bm\u202eq"
SHOWN = r"[/x][red]:bomb:\n\x1b[2J\x07\x9bm\u202eq"


def _step(stage: str, **facts: object) -> Step:
    texts = ("service", "instance", "virtual_host", "exchange", "routing_key", "queue", "protocol", "connection")
    more = ("client", "consumer", "outcome", "reason", "target")
    numbers = {"time_us": 1, "wait_us": 0, "attempt": 1, "count": 1, "bytes": 0, "partition": 1, "epoch": 1}
    fields = {**dict.fromkeys((*texts, *more), HOSTILE), **numbers, "successors": [], "stage": stage, **facts}
    return Step.model_validate(fields)


def _journey(uid: int) -> Journey:
    copy = Copy(virtual_host="/", queue=HOSTILE, state="dropped", outcome="", reason=HOSTILE, ended=True)
    steps = [_step("received"), _step("dropped", queue=""), _step("dead_lettered", queue="work", successors=[uid + 1])]
    first = Message(uid=uid, predecessor=None, steps=steps, copies=[copy], ended=True)
    second = Message(uid=uid + 1, predecessor=uid, steps=[_step("enqueued")], copies=[], ended=True)
    gap = Gap(time_us=1, service="queue", instance=HOSTILE, first_row=1, last_row=2, count=2, reason=HOSTILE)
    match = Match(uid=uid, kind="message_id", time_us=None)
    return Journey(match=match, messages=[first, second], gaps=[gap], cut_short=False)


def _trace(console: Console, journeys: int) -> None:
    found = Trace(id=HOSTILE, journeys=[_journey(10 * number) for number in range(journeys)], more=False)
    trace.show(found, console, every=False)


def _route(console: Console) -> None:
    to = {"routing_key": HOSTILE, "via": "binding", "arguments": {"k": HOSTILE}}
    hops = [Hop(to=HOSTILE, to_exchange=False, **to), Hop(to=f"{HOSTILE}2", to_exchange=True, **to)]
    first = Visit(exchange=HOSTILE, type="topic", internal=False, hops=hops)
    second = Visit(exchange=f"{HOSTILE}2", type=None, internal=False, hops=[])
    fields = {"virtual_host": HOSTILE, "exchange": HOSTILE, "routing_key": HOSTILE, "headers": {}}
    route.show(DryRun(**fields, visits=[first, second], queues=[HOSTILE]), console)


def _partitions(console: Console) -> None:
    partitions.show([Placed(0, Owner(HOSTILE, HOSTILE, 1), HOSTILE)], None, console)


def _rules(console: Console) -> None:
    tracing_shown.show_rules([Rule(name=HOSTILE, queue=HOSTILE)], console)


def _processes(console: Console) -> None:
    counts = {"time_ms": 1, "ended": 1, "exported": 1, "dropped": 0, "untraced": 0}
    tracing_shown.show_processes([Status(service=HOSTILE, instance=HOSTILE, on=True, **counts)], console)


def _event(console: Console) -> None:
    facts = LeaseAcquired(lease=HOSTILE, partition=1, role=HOSTILE, member=HOSTILE, epoch=1, address=HOSTILE)
    console.print(
        events.line(Event(time_ms=0, service="store", instance=HOSTILE, origin=0, sequence=1, facts=facts)),
        soft_wrap=True,
    )


def _followed(console: Console) -> None:
    said = dict.fromkeys(ledger.Line.__dataclass_fields__, HOSTILE)
    numbers = dict.fromkeys(("time_us", "partition", "epoch", "attempt", "count", "bytes", "number"), 1)
    line = ledger.Line(**{**said, **numbers, "stage": "settled", "successors": [], "uids": [(1, 1)], "wait_us": None})
    console.print(ledger.text(line, [HOSTILE]), soft_wrap=True)


@pytest.mark.parametrize(
    "write",
    [
        lambda console: _trace(console, 1),
        lambda console: _trace(console, 2),
        _route,
        _partitions,
        _rules,
        _processes,
        _event,
        _followed,
    ],
    ids=["trace", "traces", "route", "partitions", "rules", "processes", "event", "followed"],
)
def test_hostile_names(write: Callable[[Console], None]) -> None:
    """A command shows names of any content: markup is plain text, and no control sequence reaches the terminal."""
    written = io.StringIO()
    write(Console(file=written, width=10_000))
    text = written.getvalue()
    assert SHOWN in text
    assert all(each.isprintable() for each in text if each != "\n")


@pytest.mark.parametrize(
    ("text", "shown"), [("größe 1", "größe 1"), ("a\tb", r"a\tb"), ("a\ud800", r"a\ud800"), (HOSTILE, SHOWN)]
)
def test_printable(text: str, shown: str) -> None:
    """Letters of any language stay; what is none is shown as Python writes it."""
    assert printable(text) == shown


def test_lines_stay_lines() -> None:
    """An error of several lines keeps them, and nothing else that a terminal would obey."""
    assert printable_lines("one\ntwo\x1b") == "one\ntwo\\x1b"


def test_json_means_the_same() -> None:
    """JSON in which nothing is left for a terminal to obey says the same as before, also beyond 16 bits."""
    told = {"queue": HOSTILE, "tag": "\U000e0001", "ok": "größe"}
    shown = printable_json(json.dumps(told, ensure_ascii=False, indent=2))
    assert json.loads(shown) == told
    assert all(each.isprintable() for each in shown if each != "\n")
