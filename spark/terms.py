"""Terms of office: who had a partition under which epoch, and what gaps of the record may hide of it. Pure.

Times are µs since the Unix epoch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from spark.schema import SILENT

# By which clocks may differ: the owner after a dead one records that later than the death.
_SLACK = 1_000_000
_EVER, _NEVER = -(1 << 62), 1 << 62
_MOST_TO_NAME = 200  # go with each message of an owner that has gaps
_UNPLACED = 0  # the epoch of copies that no owner has told of
_GATEWAY = "gateway"


class Gap(NamedTuple):
    """Rows that are missing, of what an instance saw between `since` and `time`."""

    service: str
    instance: str
    reason: str
    time: int  # when it was noticed
    since: int | None  # None: not known

    @property
    def words(self) -> str:
        """It, as it is blamed."""
        noticed = datetime.fromtimestamp(self.time / 1e6, UTC)
        return f"{self.instance} ({self.reason}), noticed {noticed:%Y-%m-%d %H:%M:%S}Z"


class Unread(NamedTuple):
    """A file that cannot be read: its name below the ledger, and until when what it tells may have happened."""

    name: str
    until: int

    @property
    def words(self) -> str:
        """It, as it is blamed."""
        return f"{self.name}, which cannot be read"


class Blamed(NamedTuple):
    """A gap, or a file, to blame: for what was heard of last before `time`, or is missing of `since` until then."""

    time: int
    words: str
    since: int = _EVER


class Told(NamedTuple):
    """An instance that said something of a partition under an epoch, and when for the first time."""

    partition: int
    epoch: int
    instance: str
    began: int
    handed: int | None = None  # when it handed the partition over, if it did
    taken: int | None = None  # when it said that it had taken it over, and at once before that what is in it


class Term(NamedTuple):
    """What the record has of a partition under one epoch, and what gaps may hide of what was in it then."""

    partition: int
    epoch: int
    current_epoch: int  # the last one of the partition
    term_began: int  # when the owner of the current one had taken over, or was first heard of
    owner_ended: int | None  # when that owner was missed for good; None: it was not
    gaps: list[Blamed]  # may hide what became of copies; of epoch 0, each only for the time of its owner's term
    found_gaps: list[Blamed]  # may hide that a later owner has them
    sent_until: int | None  # when the last gap of a gateway was noticed that may hide that some were sent meanwhile
    own_gaps: list[Blamed]  # all of whoever had it under this epoch; of epoch 0 none
    takeovers: list[int]  # of epoch 0: the same of each owner of the partition
    untold: bool  # a later owner told of the partition, and not of its takeover, though takeovers are on record


def to_blame(gaps: Iterable[Gap]) -> list[Blamed]:
    """In the order in which they were noticed, so that the first that can have been is to blame. All of them: where a
    message is lost unless one of them covers it, none may be left out.
    """
    return sorted(_blamed(gap) for gap in gaps)


def makers(gaps: Iterable[Gap]) -> dict[int, list[Blamed]]:
    """The gaps of gateways by origin: the number in their names, with which they gave messages their uids. Queue
    processes have origins, too, which are not on record.
    """
    by_origin: defaultdict[int, list[Gap]] = defaultdict(list)
    for gap in gaps:
        number = gap.instance.rpartition("-")[2]
        if gap.service == _GATEWAY and number.isdecimal():
            by_origin[int(number)].append(gap)
    return {origin: to_blame(its) for origin, its in by_origin.items()}


def _blamed(gap: Gap, begin: int = _EVER, end: int = _NEVER) -> Blamed:
    """It, for what is missing between the two."""
    since = max(begin, _EVER if gap.since is None else gap.since)
    return Blamed(min(gap.time, end + _SLACK), gap.words, since)


def _hiding(gaps: Iterable[Gap]) -> list[Blamed]:
    """In that order; each since the first of it and those that were noticed later: together they may hide what became
    of a message that was heard of last before.
    """
    found: list[Blamed] = []
    for blamed in reversed(to_blame(gaps)):
        found.append(blamed._replace(since=min([blamed.since, *(later.since for later in found[-1:])])))
    return _shortened(found[::-1])


def _shortened(blamed: list[Blamed]) -> list[Blamed]:
    """Were they very many, the last one stands for all that are left out."""
    if len(blamed) <= _MOST_TO_NAME:
        return blamed
    return [*blamed[: _MOST_TO_NAME - 1], blamed[-1]._replace(since=blamed[_MOST_TO_NAME - 1].since)]


def files_to_blame(files: Iterable[Unread]) -> list[Blamed]:
    """In order of time. Were they very many, the last ones: these may say something of any time before."""
    return sorted(Blamed(file.until, file.words) for file in files)[-_MOST_TO_NAME:]


def terms(told: Iterable[Told], gaps: Sequence[Gap], heard: Mapping[str, int]) -> list[Term]:
    """Every term that the record tells of; `heard` is when each instance was heard of last.

    Where the takeover of an epoch is missing, any gap of a queue process may hide what happened under it. Of epoch 0 of
    each partition are copies that no owner has told of: the gaps of all of its owners may be to blame.
    """
    known = _Gaps([_dated(gap, heard) for gap in gaps], heard)
    partitions: defaultdict[int, dict[int, list[Told]]] = defaultdict(dict)
    tells = False  # of takeovers; older releases did not
    for one in told:
        partitions[one.partition].setdefault(one.epoch, []).append(one)
        tells |= one.taken is not None
    found = (term for number, by_epoch in partitions.items() for term in _of_partition(number, by_epoch, known))
    return [term._replace(untold=term.untold and tells) for term in found]


def troubled(found: Iterable[Term]) -> list[int]:
    """The partitions that had several owners, or whose owner has gaps."""
    several = (one.partition for one in found if _UNPLACED < one.epoch < one.current_epoch)
    return sorted({*several, *(one.partition for one in found if one.epoch > _UNPLACED and one.gaps)})


def _dated(gap: Gap, heard: Mapping[str, int]) -> Gap:
    """The gap of a silent instance begins after its last row: rows arrive in order, so none is missing before that."""
    if gap.since is None and gap.reason == SILENT and gap.instance in heard:
        return gap._replace(since=min(heard[gap.instance], gap.time))
    return gap


class _Gaps:
    def __init__(self, gaps: Sequence[Gap], heard: Mapping[str, int]) -> None:
        self.heard = heard
        self.of_queues = [gap for gap in gaps if gap.service != _GATEWAY]
        self.of_gateways = [gap for gap in gaps if gap.service == _GATEWAY]
        self._by_instance: defaultdict[str, list[Gap]] = defaultdict(list)
        for gap in gaps:
            self._by_instance[gap.instance].append(gap)

    def of(self, instances: Iterable[str]) -> list[Gap]:
        return [gap for instance in sorted(set(instances)) for gap in self._by_instance[instance]]

    def sent_until(self, end: int) -> int | None:
        """When the last gap of a gateway was noticed that had begun by then."""
        return max((gap.time for gap in self.of_gateways if _begins_before(gap, end)), default=None)


def _of_partition(number: int, by_epoch: Mapping[int, Sequence[Told]], gaps: _Gaps) -> Iterable[Term]:
    epochs = sorted(by_epoch)
    began = {epoch: _began(by_epoch[epoch]) for epoch in epochs}
    own = {epoch: gaps.of(one.instance for one in by_epoch[epoch]) for epoch in epochs}
    current = epochs[-1]
    anybodys = _of_owners(epochs, began, own, gaps, _left(by_epoch[current], gaps))
    takeovers = sorted(began.values())
    yield Term(number, _UNPLACED, current, began[current], None, anybodys, [], None, [], takeovers, untold=False)
    ended = _ended(by_epoch[current], gaps)
    for place, epoch in enumerate(epochs):
        following = epochs[place + 1] if place + 1 < len(epochs) else None
        hiding = [gap for gap in own[epoch] if following is None or _begins_before(gap, began[following])]
        # What the next owner did not find cannot have been sent since.
        end = max((gap.time for gap in hiding), default=_EVER) if following is None else began[following]
        its = [gap for gap in hiding if gap.time >= min(one.began for one in by_epoch[epoch])]
        taken = _taken(by_epoch[later] for later in epochs[place + 1 :])
        # An epoch without a word is none where nothing is missing: who claimed it had nothing to say.
        untold = len(taken) < len(epochs) - place - 1
        found = _perhaps_found(taken, current - epoch, gaps)
        sent_until, its_own = gaps.sent_until(end) if its else None, to_blame(own[epoch])
        yield Term(
            number, epoch, current, began[current], ended, _hiding(its), found, sent_until, its_own, [], untold=untold
        )


def _began(owners: Sequence[Told]) -> int:
    """When they had said what they have, if that is on record; else when they were first heard of."""
    return min([one.taken for one in owners if one.taken is not None] or [one.began for one in owners])


def _taken(later: Iterable[Sequence[Told]]) -> list[list[Told]]:
    """Of each epoch of which that is on record, who took it over."""
    taken = ([one for one in owners if one.taken is not None] for owners in later)
    return [owners for owners in taken if owners]


def _perhaps_found(taken: Sequence[Sequence[Told]], epochs: int, gaps: _Gaps) -> list[Blamed]:
    """The gaps that may hide what later owners found; any of a queue process, unless of all `epochs` it is on record
    that they were taken over.
    """
    if len(taken) < epochs:
        return _shortened(to_blame(gaps.of_queues))
    found = {gap for owners in taken for one in owners for gap in gaps.of([one.instance]) if _is_of(gap, one.taken)}
    return _shortened(to_blame(found))


def _is_of(gap: Gap, time: int | None) -> bool:
    """Whether what happened then can be missing."""
    return time is not None and _begins_before(gap, time) and gap.time >= time - _SLACK


def _of_owners(
    epochs: Sequence[int], began: Mapping[int, int], own: Mapping[int, Sequence[Gap]], gaps: _Gaps, left: int | None
) -> list[Blamed]:
    """The gaps of each owner, for its term; where an epoch is missing, and since the last owner `left`, of any queue
    process. As a look-up does.
    """
    found = _of_term(gaps.of_queues, _EVER, began[epochs[0]]) if epochs[0] > 1 else set()
    for place, epoch in enumerate(epochs):
        following = epochs[place + 1] if place + 1 < len(epochs) else None
        end = _NEVER if following is None else began[following]
        # Nobody is known to come before the first.
        found |= _of_term(own[epoch], began[epoch] if place else _EVER, end)
        if following is not None and following > epoch + 1:
            found |= _of_term(gaps.of_queues, began[epoch], end)
    if left is not None:
        found |= _of_term(gaps.of_queues, left, _NEVER)
    return [blamed for _, blamed in sorted(found)]


def _of_term(gaps: Iterable[Gap], begin: int, end: int) -> set[tuple[int, Blamed]]:
    """With when each was noticed, which is their order."""
    of_then = (gap for gap in gaps if _begins_before(gap, end) and gap.time >= begin - _SLACK)
    return {(gap.time, _blamed(gap, begin, end)) for gap in of_then}


def _begins_before(gap: Gap, time: int) -> bool:
    return gap.since is None or gap.since <= time + _SLACK


def _left(owners: Sequence[Told], gaps: _Gaps) -> int | None:
    """Since when another may have followed, that could not tell: the owner handed the partition over, or died."""
    handed = [one.handed for one in owners if one.handed is not None]
    died = [_EVER if gap.since is None else gap.since for gap in _missed(owners, gaps)]
    return min([*handed, *died], default=None)


def _ended(owners: Iterable[Told], gaps: _Gaps) -> int | None:
    """When the owner was missed; not if it was heard of again."""
    return max((gap.time for gap in _missed(owners, gaps)), default=None)


def _missed(owners: Iterable[Told], gaps: _Gaps) -> list[Gap]:
    """As which the owner was missed for good."""
    its = gaps.of(one.instance for one in owners)
    return [gap for gap in its if gap.reason == SILENT and gap.time > gaps.heard.get(gap.instance, _EVER)]
