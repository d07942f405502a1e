"""`hopline trace`: a message's way, as a waterfall."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from services.cli.console import cell
from services.cli.durations import duration, moment
from services.cli.payloads import payload_lines
from services.cli.scale import Scale
from services.cli.spans import of_applications, span_lines
from services.cli.steps import COLOURS, called, detail, is_by_hand, place, who
from services.common.printable import all_printable
from services.common.trace import (
    IN_FLIGHT,
    LOST,
    LOST_PERSISTED,
    LOST_TRANSIENT,
    UNKNOWN,
    UNSETTLED,
    WAITING,
    Copy,
    Gap,
    Journey,
    Message,
    Step,
    Trace,
    blame,
    is_let_go,
)

_BAR = 24  # columns
_NARROW_BAR = 12
_NARROW = 120
# Of each fate: what is said of it, and where a gap is to blame.
_FATES = {
    WAITING: ("not ended: it waits in queue '{queue}'",) * 2,
    UNSETTLED: ("not ended: a consumer of queue '{queue}' has it, and has not settled it",) * 2,
    IN_FLIGHT: ("not ended: {plain}, too short ago to say more",) * 2,
    LOST: ("lost: it was confirmed, and never came into queue '{queue}'",) * 2,
    LOST_PERSISTED: ("lost (persisted): it was on disk in queue '{queue}', and the next owner did not have it",) * 2,
    LOST_TRANSIENT: (
        "lost (transient): queue '{queue}' had it in memory only, and the next owner did not have it",
        "lost (transient): queue '{queue}' had it in memory only, of {gap}; the next owner did not have it",
    ),
    UNKNOWN: (
        "unknown: {plain}; what became of it then is not on record",
        "unknown: {plain}; what became of it then may be what is missing of {gap}",
    ),
}
_LET_GO = "lost (transient): queue '{queue}' had it in memory only, and its owner lost the partition"
_STYLES = (("not ended", "yellow"), ("unknown", "yellow"), ("lost", "red"))


def show(trace: Trace, console: Console, *, every: bool) -> None:
    """The way of the message, or of every one; where there are several, and not all are wanted, what they are."""
    trace = all_printable(trace)
    if len(trace.journeys) > 1 and not every:
        _list(trace, console)
    else:
        _all(trace, console, every=every)
    if trace.cut_short:
        _say(console, "older hours were not searched, it takes too long: --since and --until bound it", "yellow")
    if trace.spans_cut_short:
        _say(console, "not all files of spans were searched, it takes too long", "yellow")
    for file in trace.damaged:
        _say(console, f"passed over, for it is damaged: {file} of the ledger", "red")
    if trace.restored:
        _say(console, f"some of it happened between a backup and its restore: {trace.restored}", "yellow")
    if trace.trouble:
        _say(console, f"the record is not filed at the moment: {trace.trouble}", "yellow")


def _all(trace: Trace, console: Console, *, every: bool) -> None:
    for number, journey in enumerate(trace.journeys):
        if number:
            console.print()
        _Waterfall(journey, console).show()
    if trace.more and (every or not trace.id):
        what = "have this id" if trace.id else "fit"
        _say(console, f"more messages {what}: --limit tells more of them", "yellow")


def _list(trace: Trace, console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("uid", "is its" if trace.id else "called", "time", "exchange", "key", "now"):
        table.add_column(heading, no_wrap=heading == "uid", overflow="fold")
    for journey in trace.journeys:
        first = next((step for message in journey.messages for step in message.steps), None)
        time_us = journey.match.time_us if journey.match.kind == "found" or not first else first.time_us
        row = (
            journey.match.uid,
            journey.match.kind.replace("_", " ") if trace.id else _called(journey),
            moment(time_us) if time_us else None,
            first.exchange if first else None,
            first.routing_key if first else None,
            "; ".join(_ends(journey)) or None,
        )
        table.add_row(*map(cell, row))
    console.print(table)
    older = "; there are older ones" if trace.more else ""
    fit = "have this id" if trace.id else "fit"
    _say(console, f"{len(trace.journeys)} messages {fit}{older}: ask for a uid, or for --all", "yellow")


def _called(journey: Journey) -> str | None:
    names = {name.kind: name.id for message in journey.messages for name in message.names}
    return names.get("message_id") or names.get("correlation_id") or names.get("trace_id")


class _Waterfall:
    """One journey: all its messages on one scale of time."""

    def __init__(self, journey: Journey, console: Console) -> None:
        self._journey = journey
        self._console = console
        steps = [step for message in journey.messages for step in message.steps]
        times = [step.time_us for step in steps]
        times += [time_us for span in of_applications(journey.spans) for time_us in (span.start_us, span.end_us)]
        self._scale = Scale(times, _NARROW_BAR if console.width < _NARROW else _BAR)
        self._ordered = list(_ordered(journey.messages))
        deepest = max((depth for _, depth in self._ordered), default=0)
        self._stage = max((len(called(step.stage, step.reason)) for step in steps), default=0) + len(_indent(deepest))
        self._place = max((len(place(step)) for step in steps), default=0)
        self._instance = max((len(step.instance) for step in steps), default=0)

    def show(self) -> None:
        """Each message once: what was published, and below it what it went on as. Then what has become of it."""
        for message, depth in self._ordered:
            self._message(message, depth)
        self._spans()
        self._end()

    def _message(self, message: Message, depth: int) -> None:
        indent = _indent(depth)
        mark = f"{indent[2:]}└ " if depth else ""
        _say(self._console, f"{mark}{self._title(message)}", "bold")
        for step in message.steps:
            self._console.print(self._line(step, indent, first=step is message.steps[0]), soft_wrap=True)
        for line in payload_lines(message.payloads):
            self._console.print(line, soft_wrap=True)

    def _spans(self) -> None:
        if lines := list(span_lines(self._journey.spans, self._scale)):
            _say(self._console, "spans of applications, by their own clocks", "bold")
        for line in lines:
            self._console.print(line, soft_wrap=True)
        for link in self._journey.jaeger:
            _say(self._console, f"in Jaeger: {link}", "dim")

    def _title(self, message: Message) -> str:
        first = next((step for step in message.steps if step.stage == "received"), None)
        if first is None:
            return f"{message.uid}, {self._origin(message)}"
        by = f" by {who(first)}" if first.client or first.connection else ""
        over = f" over {first.protocol}" if first.protocol else ""
        to = f"to {_exchange(first.exchange)} with key '{first.routing_key}'"
        return f"{message.uid}, published {moment(first.time_us)} {to}{by}{over}"

    def _origin(self, message: Message) -> str:
        steps = (step for before in self._journey.messages for step in before.steps)
        made = next((step for step in steps if message.uid in step.successors), None)
        if made is None:
            return "whose beginning is not on record"
        known = "" if message.steps else "; nothing more of it is on record"
        if is_by_hand(made):
            to = f" to queue '{made.target}'" if made.target else ""
            return f"{called(made.stage, made.reason)} from queue '{made.queue}'{to}{known}"
        return f"dead-lettered from queue '{made.queue}' to {_exchange(made.target)}: {made.reason}{known}"

    def _line(self, step: Step, indent: str, *, first: bool) -> Text:
        wait = "" if first else f"+{duration(step.wait_us)}"
        line = Text.assemble(
            (f"{duration(step.time_us - self._scale.begin):>10}", "dim"),
            f"{wait:>10}  ",
            (self._scale.bar(step.time_us - step.wait_us, step.time_us), "cyan"),
            f"  {indent}",
            (f"{called(step.stage, step.reason):<{self._stage - len(indent)}}", COLOURS.get(step.stage, "")),
            f"  {place(step):<{self._place}}  ",
            (f"{step.instance:<{self._instance}}  ", "dim"),
            (detail(step), COLOURS.get(step.stage, "")),
        )
        line.rstrip()
        return line

    def _end(self) -> None:
        journey = self._journey
        if not journey.messages:
            _say(self._console, f"{journey.match.uid}: it was received, and nothing more is on record", "yellow")
        for end in _ends(journey):
            _say(self._console, end, _style(end))
        if journey.cut_short:
            _say(self._console, "it goes on; a look-up follows no further", "yellow")
        blamed = [copy.gap for message in journey.messages for copy in message.copies]
        for gap in journey.gaps:
            if gap not in blamed:
                _say(self._console, _missing(gap), "red")


def _ordered(messages: list[Message]) -> Iterator[tuple[Message, int]]:
    """Each once, with its depth: after the one that it was before."""
    children: dict[int | None, list[Message]] = {}
    known = {message.uid for message in messages}
    for message in messages:
        children.setdefault(message.predecessor if message.predecessor in known else None, []).append(message)
    shown: set[int] = set()
    # Rows may contradict each other: then there is no beginning. A circle of dead-lettering is a long line.
    pending = [(root, 0) for root in reversed([*children.pop(None, ()), *messages])]
    while pending:
        message, depth = pending.pop()
        if message.uid not in shown:
            shown.add(message.uid)
            yield message, depth
            pending.extend((child, depth + 1) for child in reversed(children.get(message.uid, [])))


def _indent(depth: int) -> str:
    return "  " * min(depth, 8)


def _exchange(name: str) -> str:
    return f"exchange '{name}'" if name else "the default exchange"


def _ends(journey: Journey) -> list[str]:
    """What has become of the message, in each queue where it has not become another."""
    found = []
    for message in journey.messages:
        own = [step for step in message.steps if _is_its_own(step, message)]
        found += [f"ended: {step.stage}{_because(step.reason)}" for step in own]
        copies = (copy for copy in message.copies if not any(told(message, copy) for told in _TOLD_OTHERWISE))
        found += [_end_of(copy) for copy in copies]
        if any(step.stage == "rolled_back" for step in message.steps):
            found.append("ended: its transaction was rolled back")
    return found


def _is_its_own(step: Step, message: Message) -> bool:
    """Whether it ends the message. One of a queue that is not named is one of the copies', where any is known."""
    ends = not step.queue and step.stage in {"returned", "refused", "dropped"}
    return ends and (step.partition is None or not message.copies)


def _goes_on(message: Message, copy: Copy) -> bool:
    its = (step for step in message.steps if (step.virtual_host, step.queue) == _key(copy))
    return any(step.successors for step in its if step.stage == "dead_lettered")


def _was_no_room(message: Message, copy: Copy) -> bool:
    """Whether the queue was full, which its publisher was told: that it was refused says the same."""
    stages = {step.stage for step in message.steps if not step.queue or (step.virtual_host, step.queue) == _key(copy)}
    full = (copy.state, copy.reason) == ("dropped", "maxlen")
    return full and "refused" in stages and not stages & {"enqueued", "recovered"}


def _never_came(message: Message, copy: Copy) -> bool:
    """Whether it ended as its message did, of which that is said."""
    there = {step.stage for step in message.steps if (step.virtual_host, step.queue) == _key(copy)}
    return copy.ended and copy.state in {step.stage for step in message.steps if not step.queue} - there


_TOLD_OTHERWISE = (_goes_on, _was_no_room, _never_came)


def _key(copy: Copy) -> tuple[str, str]:
    return copy.virtual_host, copy.queue


def _end_of(copy: Copy) -> str:
    what = copy.outcome or copy.state
    ended = "ended" if copy.ended else "not ended"
    plain = f"{what} in queue '{copy.queue}'{_because(copy.reason)}"
    if copy.ended or copy.fate not in _FATES:
        after = f", and what came after it may be what is missing of {blame(copy.gap)}" if copy.gap else ""
        return f"{ended}: {plain}{after}"
    if copy.fate == UNKNOWN and copy.unread:
        return f"unknown: {plain}; what became of it then may be in {copy.unread} of the ledger, which cannot be read"
    if copy.silent:
        return f"unknown: {plain}; {copy.silent}, which had it, does not answer at the moment"
    blamed = _LET_GO if is_let_go(copy) else _FATES[copy.fate][copy.gap is not None]
    return blamed.format(plain=plain, queue=copy.queue, gap=blame(copy.gap) if copy.gap else "")


def _style(end: str) -> str:
    return next((style for begin, style in _STYLES if end.startswith(begin)), "green")


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _missing(gap: Gap) -> str:
    rows = "rows" if gap.count < 0 else f"{gap.count} row{'s' * (gap.count != 1)}"
    return (
        f"the record is not whole here: {rows} of {gap.instance} missing ({gap.reason}), noticed {moment(gap.time_us)}"
    )


def _say(console: Console, line: str, style: str) -> None:
    console.print(Text(line, style), soft_wrap=True)
