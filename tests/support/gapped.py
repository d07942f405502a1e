"""Small ledgers of messages, owners and gaps, drawn at random: any gap at any time. Each has names, a partition and a
time of its own, so that many are one. Times are half seconds: a rule that is a little off shows where two are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from tests.support.ledger_rows import START, stage

Row = dict[str, Any]

_APART = 260.0  # seconds from one ledger to the next
_TERM = 50.0
_OWNERS = ([0], [0, 1], [0, 1], [0, 1, 2], [0, 1, 0])
_NOBODY = {"queue": "", "count": 0, "first_uid": None, "last_uid": None, "uids": []}


@dataclass(frozen=True)
class Story:
    """A message in a queue of its own: `owner` had it first, by place; each time is after it was enqueued there."""

    owner: int
    enqueued: float
    persisted: float | None = None
    confirmed: float | None = None
    delivered: float | None = None
    sent: float | None = None
    requeued: float | None = None
    let_go: float | None = None
    settled: float | None = None
    recovered: str = ""  # by the next owner, and why
    again: bool = False  # that one delivers it
    placed: bool = True  # else no owner tells of it
    alone: bool = False  # another of its queue expired
    received: bool = True  # else no row of its publisher's gateway says so, if an owner does

    @property
    def has_ended(self) -> bool:
        """Whether nothing comes after."""
        return self.settled is not None


@dataclass(frozen=True)
class Hole:
    """A gap: `whose` is an owner by place among instances, "gateway" or "other"."""

    whose: int | str
    silent: bool
    since: float | None
    lasts: float


@dataclass(frozen=True)
class Ledger:
    """`owners` are instances by epoch; of epoch `untold` nothing is on record, `untaken` told no takeover."""

    owners: Sequence[int]
    untold: int
    untaken: int
    stories: Sequence[Story]
    holes: Sequence[Hole]
    handed: bool  # the last owner handed the partition over


def _after(most: int) -> st.SearchStrategy[float | None]:
    return st.none() | st.integers(0, most).map(lambda halves: halves / 2)


STORIES = st.builds(
    Story,
    owner=st.integers(0, 2),
    enqueued=st.integers(2, 110).map(lambda halves: halves / 2),
    persisted=_after(3),
    confirmed=_after(5),
    delivered=st.none() | _after(60),
    sent=st.none() | _after(60),
    requeued=st.none() | _after(60),
    let_go=st.none() | st.none() | _after(140),
    settled=st.none() | st.none() | st.none() | _after(40),
    recovered=st.sampled_from(("", "", "", "journal", "held", "handed_over")),
    again=st.booleans(),
    placed=st.sampled_from((True, True, True, False)),
    alone=st.sampled_from((False, False, False, True)),
    received=st.sampled_from((True, True, True, False)),
)
HOLES = st.builds(
    Hole,
    whose=st.sampled_from((0, 0, 0, 1, 1, 2, "gateway", "other")),
    silent=st.booleans(),
    since=st.none() | (st.integers(-40, 400) | st.integers(80, 110)).map(lambda halves: halves / 2),
    lasts=(st.integers(0, 80) | st.integers(0, 12)).map(lambda halves: halves / 2),
)
LEDGERS = st.builds(
    Ledger,
    owners=st.sampled_from(_OWNERS),
    untold=st.sampled_from((0, 0, 0, 0, 0, 2)),
    untaken=st.sampled_from((0, 0, 0, 0, 2, 3)),
    stories=st.lists(STORIES, min_size=1, max_size=4),
    holes=st.lists(HOLES, max_size=4),
    handed=st.sampled_from((False, False, False, True)),
)


def in_order(ledgers: Sequence[Ledger]) -> list[Ledger]:
    """Those last whose gaps may be anybody's: what is noticed later may be to blame, also of another ledger."""
    return sorted(ledgers, key=lambda one: (_is_anybodys(one), one.untold > 0 or one.untaken > 0))


def _is_anybodys(ledger: Ledger) -> bool:
    return all(hole.since is not None for hole in ledger.holes if not isinstance(hole.whose, int))


class Written:
    """A ledger as rows."""

    def __init__(self, number: int, ledger: Ledger) -> None:
        self.number, self.ledger = number, ledger
        self.rows: list[Row] = []
        for epoch in range(1, len(ledger.owners) + 1):
            self._term(epoch)
        for place, story in enumerate(ledger.stories):
            self._tell(place, story)
        self.gaps = [self._gap(hole) for hole in ledger.holes]

    def queue(self, place: int) -> str:
        return f"q{self.number}-{place}"

    def _term(self, epoch: int) -> None:
        begins = _TERM * (epoch - 1)
        sign = {"queue": f"signs-{self.number}", "epoch": epoch}
        if epoch > 1 and epoch != self.ledger.untaken:
            self._say("taken_over", 0, begins, **sign | _NOBODY)
        self._say("enqueued", 90 + epoch, begins + 1, **sign)
        self._say("settled", 90 + epoch, begins + 2, **sign)
        if epoch == len(self.ledger.owners) and self.ledger.handed:
            self._say("handed_over", 0, begins + _TERM, **sign | _NOBODY)

    def _tell(self, place: int, story: Story) -> None:
        epoch = min(story.owner, len(self.ledger.owners) - 1) + 1
        at, queue = _TERM * (epoch - 1) + story.enqueued, self.queue(place)
        here = {"queue": queue, "epoch": epoch}
        if story.received or not story.placed or epoch == self.ledger.untold:
            self._say("received", place, at - 0.02)
            self._say("routed", place, at - 0.01, queue=queue)
        self._maybe("confirmed", place, at, story.confirmed)
        self._maybe("sent", place, at, story.sent, queue=queue)
        if story.placed:
            self._say("enqueued", place, at, **here)
            for name, later in (("persisted", 0.0), ("delivered", 0.1), ("requeued", 0.2)):
                self._maybe(name, place, at + later, getattr(story, name), **here)
            last = at + 0.3 + max(story.delivered or 0, story.requeued or 0)
            self._maybe("settled", place, last, story.settled, **here)
            self._maybe("dropped", place, last, None if story.has_ended else story.let_go, reason="no_owner", **here)
        if story.placed and not story.has_ended and story.recovered and epoch < len(self.ledger.owners):
            there, begins = here | {"epoch": epoch + 1}, _TERM * epoch
            self._say("recovered", place, begins, reason=story.recovered, **there)
            self._maybe("delivered", place, begins, 5.0 if story.again else None, **there)
        if story.alone:
            self._say("expired", 50 + place, at, reason="message_ttl", **here)

    def _maybe(self, name: str, place: int, at: float, after: float | None, **facts: Any) -> None:
        if after is not None:
            self._say(name, place, at + after, **facts)

    def _say(self, name: str, place: int, at: float, **facts: Any) -> None:
        epoch = facts.get("epoch", 0)
        if epoch and epoch == self.ledger.untold:
            return
        uid = (self.number << 20) + place
        row = len(self.rows) + 1
        made = stage(name, uid, at=self._begin + at, partition=self.number, row=row)
        instance = self._owner(self.ledger.owners[epoch - 1]) if epoch else f"gateway-{self.number}"
        self.rows.append({**made, "instance": instance, "virtual_host": f"v{self.number}", **facts})

    def _gap(self, hole: Hole) -> Row:
        whose = hole.whose
        instance = self._owner(whose) if isinstance(whose, int) else f"{whose}-{self.number}"
        heard = max((_after_start(row) for row in self.rows if row["instance"] == instance), default=self._begin)
        since = None if hole.since is None else self._begin + hole.since
        noticed = (self._begin + 60 if since is None else since) + hole.lasts
        if hole.silent:  # nothing comes of it any more
            since, noticed = None if since is None else max(since, heard), max(noticed, heard + 0.5)
        return {
            "service": "gateway" if whose == "gateway" else "queue", "instance": instance, "count": -1,
            "first_row": 1, "last_row": 1, "reason": "silent" if hole.silent else "given_up",
            "time": START + timedelta(seconds=noticed),
            "since": None if since is None else START + timedelta(seconds=since),
        }  # fmt: skip

    @property
    def _begin(self) -> float:
        return _APART * self.number

    def _owner(self, place: int) -> str:
        return f"queue-{self.number}{'abc'[place]}"


def _after_start(row: Row) -> float:
    seconds: float = (row["time"] - START).total_seconds()
    return seconds


def written(ledgers: Sequence[Ledger]) -> Iterator[Written]:
    """In an order in which one does not disturb the other."""
    return (Written(number, one) for number, one in enumerate(in_order(ledgers), 1))
