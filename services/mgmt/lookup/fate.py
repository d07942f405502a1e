"""What is known of a copy whose end is not on record, and the gap that is to blame for what is not. Pure.

The same rules as those of the audit (docs/audit.md), for one message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from services.common.trace import (
    IN_FLIGHT,
    LOST,
    LOST_PERSISTED,
    LOST_TRANSIENT,
    UNKNOWN,
    UNSETTLED,
    WAITING,
    Gap,
    Step,
    is_let_go,
)
from services.mgmt.lookup.blame import NEVER, WAIT_US, Follower, Window, covers, hiding
from services.mgmt.lookup.blame import SLACK_US as _SLACK_US
from services.mgmt.lookup.heirs import Heirs, heirs

# An instance that vanishes is missed after 30 s, and that is filed some ten seconds later.
_GRACE_US = 60_000_000
_PLACED = {"enqueued", "recovered"}
_ASIDE = {"persisted", "sent", "copied"}  # which say nothing of where it is by then
_GATEWAY = "gateway"
_SILENT = "silent"
_EVER = -(1 << 62)


Followers: TypeAlias = Callable[[int, int, int], Sequence[Follower]]
"""The owners that took over a partition after an epoch, since a time, in order."""


Owners: TypeAlias = Callable[[int, int, int], Sequence[Follower]]
"""The owners of a partition by epoch, as far as they are known: all takeovers, and who told of it between two times."""


def _nobody_known(_partition: int, _since_us: int, _until_us: int) -> Sequence[Follower]:
    return ()


Tellers: TypeAlias = Callable[[int, int, int, int], Sequence[Follower] | None]
"""Who told of a partition, as its owner of a later epoch than one, between two times; None where that is not known."""


def _nobody_told(_partition: int, _epoch: int, _since_us: int, _until_us: int) -> Sequence[Follower]:
    return ()


def _no_takeover() -> bool:
    return False


EndsAlone: TypeAlias = Callable[[str, str, int, int], bool]
"""Whether messages of a queue, in a virtual host, ended without any consumer between two times."""


def _nothing_does(_virtual_host: str, _queue: str, _since_us: int, _until_us: int) -> bool:
    return False


Unread: TypeAlias = Callable[[int], str]
"""The file that has some of what is on record since a time, and cannot be read; "" where there is none."""


def _all_read(_since_us: int) -> str:
    return ""


class Record(NamedTuple):
    """What else is on record: gaps by time, owners, what expires, files that are damaged; and when it is asked."""

    gaps: Sequence[Gap]
    followers: Followers
    now_us: int
    ends_alone: EndsAlone = _nothing_does
    unread: Unread = _all_read
    owners: Owners = _nobody_known
    tellers: Tellers = _nobody_told
    takes_over: Callable[[], bool] = _no_takeover  # whether takeovers are on record at all: of older releases none are


class Fate(NamedTuple):
    """As in `Copy`; `gap` is to blame, or the file `unread`."""

    name: str
    gap: Gap | None = None
    unread: str = ""


def fate_of(copy: Sequence[Step], message: Sequence[Step], record: Record, sent_on_us: int | None = None) -> Fate:
    """Of a copy that has not ended: `copy` are its steps by time, `message` all of its message; `sent_on_us` is when an
    owner sent it on, or copied it, if the message was not received.
    """
    fate = _fate_of(copy, message, record, sent_on_us)
    if fate.name in {"", IN_FLIGHT, UNKNOWN} or not (unread := record.unread(copy[-1].time_us)):
        return fate
    return Fate(UNKNOWN, fate.gap, unread)


def _fate_of(copy: Sequence[Step], message: Sequence[Step], record: Record, sent_on_us: int | None) -> Fate:
    placed = [step for step in copy if step.stage in _PLACED and step.partition is not None and step.epoch]
    if not placed:
        return _never_enqueued(copy, message, record, sent_on_us)
    known = [*placed, *(step for step in copy if step.stage == "delivered")]
    # Who sent it on says so when it is safe, as a confirm does.
    safe = [step.time_us for step in message if step.stage == "confirmed"] + (
        [] if sent_on_us is None else [sent_on_us]
    )
    return _Placed(copy, safe, max(known, key=lambda step: step.epoch or 0), record).fate()


def _never_enqueued(copy: Sequence[Step], message: Sequence[Step], record: Record, sent_on_us: int | None) -> Fate:
    own = [step for step in message if step.stage in {"received", "confirmed"}]
    told = [step for step in copy if step.stage not in _ASIDE]
    times = [step.time_us for step in (*told, *own)] + ([] if sent_on_us is None else [sent_on_us])
    if max(times, default=copy[-1].time_us) > record.now_us - _GRACE_US:
        return Fate(IN_FLIGHT)
    confirms = [step.time_us for step in own if step.stage == "confirmed"]
    # Of one of which it is only known that a consumer has had it, an owner had it at any time.
    window = _until_owned(times, confirms, sent_on_us) if times else Window(_EVER, record.now_us)
    if gap := hiding_owner(copy, window, record):
        return Fate(UNKNOWN, gap)
    return Fate(LOST if confirms or sent_on_us is not None else "")


def _until_owned(times: Sequence[int], confirms: Sequence[int], sent_on_us: int | None) -> Window:
    """Its owner had it before it was confirmed; one that was not may have waited for an owner, and a dead letter does
    until there is one.
    """
    if confirms:
        return Window(min(times), max(confirms))
    return Window(min(times), max(times) + WAIT_US if sent_on_us is None else NEVER)


def before_recovered(copy: Sequence[Step], begin: int, record: Record) -> Gap | None:
    """The gap that can hold all that was said of a copy by the owner that had it first, where the first word is that of
    an owner which has read it back; `begin` is when its message was there.
    """
    placed = min((step for step in copy if step.stage in _PLACED), key=lambda step: step.time_us, default=None)
    if placed is None or placed.stage != "recovered":
        return None
    return hiding_owner(copy, Window(begin, placed.time_us), record)


def hiding_owner(copy: Sequence[Step], window: Window, record: Record) -> Gap | None:
    """The gap that can hold what an owner of its partition would have said. Who that was is asked only if one can."""
    some = [gap for gap in record.gaps if gap.service != _GATEWAY and covers(gap, window)]
    partition = next((step.partition for step in copy if step.partition is not None), -1)
    if not some or partition < 0:
        return hiding(some, (), window)
    owners = record.owners(partition, window.begin, min(window.end, max(gap.time_us for gap in some)))
    if window.end == NEVER:
        last = max(step.time_us for step in copy)
        following = (owner.time_us + WAIT_US for owner in owners if owner.time_us > last)
        window = Window(window.begin, min(following, default=NEVER))
    return hiding(some, owners, window)


class _Placed:
    """`owner` is the step by which it was last known to have its place; `safe` is when others knew that it was."""

    def __init__(self, copy: Sequence[Step], safe: Sequence[int], owner: Step, record: Record) -> None:
        self._record = record
        self._owner = owner
        self._on_disk = any(step.stage == "persisted" for step in copy)
        self._was_taken = any(step.stage in {"delivered", "sent"} for step in copy)
        self._last = max(step.time_us for step in copy if step.stage not in _ASIDE and not is_let_go(step))
        self._safe_by = max([self._last, *safe]) + _SLACK_US
        self._is_held = _is_held(copy)
        later = [gap for gap in record.gaps if gap.time_us >= self._last]
        self._heirs = _heirs(owner, self._last, record)
        own = [gap for gap in later if gap.instance == owner.instance]
        self._hiding = [gap for gap in own if self._heirs.begin_after(gap)]
        self._finding = [gap for gap in later if self._heirs.perhaps_found(gap)]
        self._since = min((_EVER if gap.since_us is None else gap.since_us for gap in self._hiding), default=_EVER)

    def fate(self) -> Fate:
        gap = self._hiding[0] if self._hiding else None
        if self._heirs.known:
            return self._of_gone(self._heirs.known[-1], gap)
        if not self._heirs.all_known and self._finding:
            return Fate(UNKNOWN, gap or self._finding[0])
        if gap and self._perhaps_ended():
            return Fate(UNKNOWN, gap)
        # Who is silent is dead: what it had in memory may be handed over yet, for all that is known.
        if any(each.reason == _SILENT for each in self._hiding):
            return Fate(WAITING) if self._on_disk else Fate(UNKNOWN, gap)
        return Fate(UNSETTLED if self._is_held else WAITING)

    def _of_gone(self, newest: Follower, gap: Gap | None) -> Fate:
        if max(self._last, newest.time_us) > self._record.now_us - _GRACE_US:
            return Fate(IN_FLIGHT)
        if self._finding or self._untold():
            return Fate(UNKNOWN, gap or next(iter(self._finding), None))
        if gap is None:
            return Fate(LOST_PERSISTED if self._on_disk else LOST_TRANSIENT)
        in_memory = not self._on_disk and self._safe_by <= self._since
        return Fate(LOST_TRANSIENT if in_memory and not self._perhaps_ended() else UNKNOWN, gap)

    def _untold(self) -> bool:
        """Whether one of them has not said what it found, of a release that does: nothing is lost for sure."""
        return self._heirs.some_untold and (bool(self._heirs.taken) or self._record.takes_over())

    def _perhaps_ended(self) -> bool:
        """Whether a consumer may have settled it in a gap; or it expired or was dropped, as others of its queue."""
        return self._was_taken or self._sent_unseen() or self._ends_alone()

    def _ends_alone(self) -> bool:
        return self._record.ends_alone(self._owner.virtual_host, self._owner.queue, self._last, self._until())

    def _sent_unseen(self) -> bool:
        """Whether a gateway, of which something is missing too, may have sent it to a consumer meanwhile."""
        meanwhile = Window(max(self._since, self._last) - _SLACK_US, self._until())
        return any(gap.service == _GATEWAY and covers(gap, meanwhile) for gap in self._record.gaps)

    def _until(self) -> int:
        return self._heirs.known[0].time_us if self._heirs.known else max(gap.time_us for gap in self._hiding)


def _heirs(owner: Step, last: int, record: Record) -> Heirs:
    partition, epoch = owner.partition or 0, owner.epoch or 0
    told = record.tellers(partition, epoch, last, record.now_us)
    return heirs(epoch, record.followers(partition, epoch, last), told)


def _is_held(copy: Sequence[Step]) -> bool:
    """Whether a consumer has it: it was delivered, and did not come back. What a former owner says late is old."""
    held = False
    for step in sorted(copy, key=lambda step: (step.epoch or 0, step.time_us)):
        if step.stage in {"delivered", "recovered"}:
            held = step.stage == "delivered" or step.reason == "held"
        elif step.stage == "requeued":
            held = False
    return held
