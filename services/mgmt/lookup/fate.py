"""What is known of a copy whose end is not on record, and the gap that is to blame for what is not. Pure.

The same rules as those of the audit (spark/README.md), for one message.
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
)
from services.mgmt.lookup.blame import NEVER, WAIT_US, Follower, Window, covers, hiding
from services.mgmt.lookup.blame import SLACK_US as _SLACK_US

# An instance that vanishes is missed after 30 s, and that is filed some ten seconds later.
_GRACE_US = 60_000_000
_PLACED = {"enqueued", "recovered"}
_ASIDE = {"persisted", "sent", "copied"}  # which say nothing of where it is by then
_GATEWAY = "gateway"
_SILENT = "silent"


Followers: TypeAlias = Callable[[int, int, int], Sequence[Follower]]
"""The owners that took over a partition after an epoch, since a time, in order."""


Owners: TypeAlias = Callable[[int, int, int], Sequence[Follower]]
"""The owners of a partition by epoch, as far as they are known: all takeovers, and who told of it between two times."""


def _nobody_known(_partition: int, _since_us: int, _until_us: int) -> Sequence[Follower]:
    return ()


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
    return _Placed(copy, message, max(placed, key=lambda step: step.epoch or 0), record).fate()


def _never_enqueued(copy: Sequence[Step], message: Sequence[Step], record: Record, sent_on_us: int | None) -> Fate:
    own = [step for step in message if step.stage in {"received", "confirmed"}]
    times = [step.time_us for step in (*copy, *own)] + ([] if sent_on_us is None else [sent_on_us])
    if max(times) > record.now_us - _GRACE_US:
        return Fate(IN_FLIGHT)
    confirms = [step.time_us for step in own if step.stage == "confirmed"]
    if gap := hiding_owner(copy, _until_owned(times, confirms, sent_on_us), record):
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
    """`owner` is the step by which it was last known to have its place."""

    def __init__(self, copy: Sequence[Step], message: Sequence[Step], owner: Step, record: Record) -> None:
        self._record = record
        self._owner = owner
        self._on_disk = any(step.stage == "persisted" for step in copy)
        self._was_taken = any(step.stage in {"delivered", "sent"} for step in copy)
        self._last = max(step.time_us for step in copy if step.stage not in _ASIDE)
        confirms = [step.time_us for step in message if step.stage == "confirmed"]
        self._safe_by = max(confirms, default=self._last) + _SLACK_US
        self._is_held = _is_held(copy)
        followers = record.followers(owner.partition or 0, owner.epoch or 0, self._last)
        self._follower = followers[0] if followers else None
        later = [gap for gap in record.gaps if gap.time_us >= self._last]
        self._hiding = [gap for gap in later if gap.instance == owner.instance and _begins_before(gap, self._follower)]
        told = len(followers) == followers[-1].epoch - (owner.epoch or 0) if followers else True
        self._unfound = [gap for gap in later if _hides_what_was_found(gap, followers, every_epoch_is_told=told)]

    def fate(self) -> Fate:
        gap = self._hiding[0] if self._hiding else None
        if self._follower:
            return self._of_gone(self._follower, gap)
        perhaps_taken = gap is not None and self._perhaps_ended(gap)
        # Who is silent is dead: what it had in memory may be handed over yet, for all that is known.
        if gap and (perhaps_taken or (gap.reason == _SILENT and not self._on_disk)):
            return Fate(UNKNOWN, gap)
        if gap and gap.reason == _SILENT:
            return Fate(WAITING)
        return Fate(UNSETTLED if self._is_held else WAITING)

    def _of_gone(self, follower: Follower, gap: Gap | None) -> Fate:
        if max(self._last, follower.time_us) > self._record.now_us - _GRACE_US:
            return Fate(IN_FLIGHT)
        if self._unfound and (gap is None or gap.reason != _SILENT):
            return Fate(UNKNOWN, gap or self._unfound[0])
        if gap is None:
            return Fate(LOST_PERSISTED if self._on_disk else LOST_TRANSIENT)
        in_memory = not self._on_disk and gap.since_us is not None and self._safe_by <= gap.since_us
        if in_memory and not self._perhaps_ended(gap):
            return Fate(LOST_TRANSIENT, gap)
        return Fate(UNKNOWN, gap)

    def _perhaps_ended(self, gap: Gap) -> bool:
        """Whether a consumer may have settled it in the gap; or it expired or was dropped, as others of its queue."""
        return self._was_taken or self._sent_unseen(gap) or self._ends_alone(gap)

    def _ends_alone(self, gap: Gap) -> bool:
        until = self._follower.time_us if self._follower else gap.time_us
        return self._record.ends_alone(self._owner.virtual_host, self._owner.queue, self._last, until)

    def _sent_unseen(self, gap: Gap) -> bool:
        """Whether a gateway, of which something is missing too, may have sent it to a consumer meanwhile."""
        begin = (gap.since_us if gap.since_us is not None else self._last) - _SLACK_US
        end = self._follower.time_us if self._follower else gap.time_us
        return any(
            one.service == _GATEWAY and one.time_us >= begin and (one.since_us or 0) <= end + _SLACK_US
            for one in self._record.gaps
        )


def _begins_before(gap: Gap, follower: Follower | None) -> bool:
    """Whether it had begun before somebody followed."""
    return follower is None or gap.since_us is None or gap.since_us <= follower.time_us + _SLACK_US


def _hides_what_was_found(gap: Gap, followers: Sequence[Follower], *, every_epoch_is_told: bool) -> bool:
    """Whether it may have what a later owner said that it has; or all that one said of whom nothing is known."""
    its = (each for each in followers if each.instance == gap.instance)
    return any(_begins_before(gap, each) for each in its) or (not every_epoch_is_told and gap.service != _GATEWAY)


def _is_held(copy: Sequence[Step]) -> bool:
    """Whether a consumer has it: it was delivered, and did not come back."""
    held = False
    for step in copy:
        if step.stage in {"delivered", "recovered"}:
            held = step.stage == "delivered" or step.reason == "held"
        elif step.stage == "requeued":
            held = False
    return held
