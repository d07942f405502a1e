"""What a look-up asks the ledger's tables."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from services.common.errors import InternalError
from services.common.trace import Gap, Match, Name
from services.common.uid import SEQUENCE_BITS
from services.mgmt.ledger.instances import HEARD_AGAIN, SILENT
from services.mgmt.lookup.blame import Follower
from services.mgmt.lookup.database import Database, Row
from services.mgmt.lookup.hours import HOUR_US, hour_of, parsed, windows
from services.mgmt.lookup.stage_row import COLUMNS, StageRow

_WINDOW = 24  # hours that are searched together: most questions are about today
_NAMED_US = 60_000_000
_SLACK_US = HOUR_US  # by which clocks may differ, and a row of a batch be older than its consequences

_OF_FATES = {"stages", "gaps"}
_UIDS = re.compile(r"[0-9]{1,19}", re.ASCII)
_TRACE_ID = re.compile(r"[0-9a-fA-F]{32}")
_LATEST = (1 << 63) - 1  # of epochs
_SMALLEST_UID, _LARGEST_UID = 1 << SEQUENCE_BITS, (1 << 63) - 1

_HAS = "first_uid <= $uid and last_uid >= $uid and {}"
_IN = "len(list_filter({}, lambda one: one.first <= $uid and one.last >= $uid)) > 0"
_SPEAKS_OF = _HAS.format(_IN.format("uids"))
_ENDS_ALONE = (
    "queue = $queue and virtual_host = $virtual_host and service = 'queue' "
    "and stage in ('expired', 'dropped', 'dead_lettered') and reason not in ('rejected', 'no_owner') limit 1"
)
_LEADS_TO = "stage in ('dead_lettered', 'copied') and " + _IN.format("successors")


class Matches(NamedTuple):
    """The newest messages that have an id."""

    found: list[Match]
    more: bool


class Telling(NamedTuple):
    """An owner of a partition: when it told of it first and last, as far as was looked."""

    partition: int
    epoch: int
    instance: str
    first_us: int
    last_us: int


def as_uid(asked: str) -> int | None:
    """The uid that `asked` can be."""
    number = int(asked) if _UIDS.fullmatch(asked) else 0
    return number if _SMALLEST_UID <= number <= _LARGEST_UID else None


class Search:
    """Newest hours first; every method raises what `Database.select` does."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last_words: dict[tuple[str, int], int | None] = {}  # by instance, and when it was missed

    def matches(self, asked: str, most: int, *, everything: bool) -> Matches:
        """Of the newest day that has any, or of all that is filed; besides these, of what `asked` may be the uid of."""
        uid = as_uid(asked)
        found: dict[int, Match] = {}
        for window in windows(self._database.hours("ids"), _WINDOW):
            named = self._named(_names(asked), most, window)
            # What is not filed yet comes with each window.
            found |= {match.uid: match for match in named if match.uid not in found}
            if len(found) > most or (named and not everything):
                break
        own = [Match(uid=uid, kind="uid", time_us=None)] if uid is not None else []
        others = [match for match in list(found.values())[:most] if match.uid != uid]
        return Matches(own + others, more=len(found) > most)

    def rows_of(self, uid: int, since_us: int | None = None) -> list[StageRow]:
        """All rows of a message, each once, by time; it cannot have begun later than `since_us`."""
        hours = self._database.hours("stages")
        if since_us is not None:
            return _tidy(self._speaking_of(uid, _from(hours, since_us)))
        rows: list[StageRow] = []
        for window in windows(hours, _WINDOW):
            rows += self._speaking_of(uid, window)
            if rows and window and _begins_in(rows, window):
                break
        return _tidy(rows)

    def successions_to(self, uid: int, time_us: int) -> list[StageRow]:
        """Rows that say that something went on as `uid`, or was copied, which began at `time_us`."""
        begin, end = hour_of(time_us - _SLACK_US), hour_of(time_us + _SLACK_US)
        hours = [hour for hour in self._database.hours("stages") if begin <= hour <= end]
        rows = self._database.select("stages", COLUMNS, _LEADS_TO, {"uid": uid}, hours)
        return _tidy([StageRow(*row) for row in rows])

    def names(self, received: Mapping[int, int]) -> dict[int, list[Name]]:
        """The ids of messages, by uid; `received` has the time at which each was received."""
        if not received:
            return {}
        near = {hour_of(time_us + slack) for time_us in received.values() for slack in (-_SLACK_US, 0, _SLACK_US)}
        hours = [hour for hour in self._database.hours("ids") if hour in near]
        # Ids are on record with the row `received`: files of other times need not be read.
        about = min(received.values()) - _NAMED_US, max(received.values()) + _NAMED_US
        rows = self._database.names(received.keys(), hours, about)
        return _by_uid(sorted(received), sorted(set(rows)))

    def gaps(self, since_us: int) -> list[Gap]:
        """Those that were noticed later than that, by time; not those that were taken back."""
        return [self._dated(gap) for gap in self._noticed(since_us)]

    def _noticed(self, since_us: int) -> list[Gap]:
        columns = "epoch_us(time), service, instance, first_row, last_row, count, reason"
        hours = _from(self._database.hours("gaps"), since_us)
        condition, values = "epoch_us(time) >= $since", {"since": since_us}
        try:
            rows = self._database.select("gaps", f"{columns}, epoch_us(since)", condition, values, hours)
        except InternalError:  # of an older release, all of them
            rows = self._database.select("gaps", f"{columns}, null", condition, values, hours)
        ordered = sorted(set(rows), key=lambda row: row[:-1])
        return _standing([Gap(**dict(zip(Gap.model_fields, row, strict=True))) for row in ordered])

    def _dated(self, gap: Gap) -> Gap:
        """The gap of a silent instance begins after its last row: rows arrive in order, so none is missing before."""
        if gap.since_us is not None or gap.reason != SILENT:
            return gap
        key = gap.instance, gap.time_us
        if key not in self._last_words:
            self._last_words[key] = self._last_row(*key)
        return gap.model_copy(update={"since_us": self._last_words[key]})

    def _last_row(self, instance: str, until_us: int) -> int | None:
        """When an instance wrote its last row of the day before; None where it wrote none."""
        last = hour_of(until_us)
        hours = [hour for hour in self._database.hours("stages") if last - _WINDOW <= hour <= last]
        columns, values = "max(epoch_us(time))", {"instance": instance}
        rows = self._database.select("stages", columns, "instance = $instance", values, hours)
        times = [time_us for (time_us,) in rows if time_us is not None]
        return min(max(times), until_us) if times else None

    def followers(self, partition: int, epoch: int, since_us: int) -> list[Follower]:
        """The owners that have taken over a partition after an epoch, in order.

        Their rows are the last in the order of stages, so that statistics tell which parts of files have any.
        """
        hours = _from(self._database.hours("stages"), since_us)
        condition = "stage = 'taken_over' and partition = $partition and epoch > $epoch"
        values = {"partition": partition, "epoch": epoch}
        columns, within = "epoch_us(time), epoch, instance", {"stage": ("taken_over", "taken_over")}
        rows = self._database.select("stages", columns, condition, values, hours, within=within)
        return sorted({Follower(*row) for row in rows}, key=lambda follower: follower.epoch)

    def taken_over(self) -> dict[int, list[Follower]]:
        """All takeovers on record, by partition."""
        columns, within = "partition, epoch_us(time), epoch, instance", {"stage": ("taken_over", "taken_over")}
        hours = self._database.hours("stages")
        rows = self._database.select("stages", columns, "stage = 'taken_over'", {}, hours, within=within)
        found: defaultdict[int, list[Follower]] = defaultdict(list)
        for partition, *its in rows:
            found[partition].append(Follower(*its))
        return found

    def handed_over(self, first_hour: int, last_hour: int) -> dict[tuple[int, int], int]:
        """When partitions were handed over in these hours, by partition and epoch."""
        # Only rows about partitions are of no message: statistics tell which parts of files have any.
        condition, within = "count = 0 and stage = 'handed_over'", {"count": (0, 0)}
        hours, columns = self.hours(first_hour, last_hour), "partition, epoch, epoch_us(time)"
        rows = self._database.select("stages", columns, condition, {}, hours, within=within)
        return {(partition, epoch): time_us for partition, epoch, time_us in rows}

    def told(self, first_hour: int, last_hour: int) -> list[Telling]:
        """Who told of partitions as their owner in these hours."""
        columns = "partition, epoch, instance, min(epoch_us(time)), max(epoch_us(time))"
        condition = "partition >= 0 and epoch > 0 and service = 'queue' group by partition, epoch, instance"
        rows = self._database.select("stages", columns, condition, {}, self.hours(first_hour, last_hour))
        return [Telling(*row) for row in rows]

    def told_since(self, partition: int, epoch: int, first_hour: int, last_hour: int) -> list[Telling]:
        """Who told in these hours of a partition as its owner of a later epoch."""
        # Statistics tell which parts of files have no epoch so late, and only what is of the partition is read further.
        columns = "partition, epoch, instance, min(epoch_us(time)), max(epoch_us(time))"
        condition = "partition = $partition and epoch > $epoch group by partition, epoch, instance"
        values, within = {"partition": partition, "epoch": epoch}, {"epoch": (epoch + 1, _LATEST)}
        hours = self.hours(first_hour, last_hour)
        return [
            Telling(*row) for row in self._database.select("stages", columns, condition, values, hours, within=within)
        ]

    def missed(self, instance: str, since_hour: int) -> list[Gap]:
        """As which an instance was missed since that hour."""
        gaps = self._noticed(since_hour * HOUR_US)
        return [self._dated(gap) for gap in gaps if gap.instance == instance and gap.reason == SILENT]

    def hours(self, first: int, last: int) -> list[int]:
        """Those between two, newest first, of which something is filed."""
        return [hour for hour in self._database.hours("stages") if first <= hour <= last]

    def ends_alone(self, virtual_host: str, queue: str, since_us: int, until_us: int) -> bool:
        """Whether messages of a queue expired, or were dropped, in these hours."""
        hours = [hour for hour in _from(self._database.hours("stages"), since_us) if hour <= hour_of(until_us)]
        values = {"virtual_host": virtual_host, "queue": queue}
        return bool(self._database.select("stages", "stage", _ENDS_ALONE, values, hours))

    def unread(self, since_us: int) -> str:
        """The first damaged file of these hours, of stages or gaps, as far as somebody has tried to read; or ""."""
        begin = hour_of(since_us - _SLACK_US)
        places = (path.split("/") for path in self._database.damaged)
        some = (place for place in places if place[0] in _OF_FATES and (parsed(*place[1:3]) or 0) >= begin)
        return "/".join(next(some, ()))

    def _named(self, names: Iterable[str], most: int, hours: list[int]) -> list[Match]:
        # Every row names a message at least, so more rows than that are of no use.
        rows = [row for name in names for row in self._database.named(name, hours, most + 1)]
        found: dict[int, Match] = {}
        for kind, first, last, time_us in sorted(rows, key=lambda row: (row[3], row[2]), reverse=True):
            for uid in range(last, max(first, last - most) - 1, -1):
                found.setdefault(uid, Match(uid=uid, kind=kind, time_us=time_us))
        return list(found.values())

    def _speaking_of(self, uid: int, hours: list[int]) -> list[StageRow]:
        rows = self._database.select("stages", COLUMNS, _SPEAKS_OF, {"uid": uid}, hours, having=uid)
        return [StageRow(*row) for row in rows]


def _by_uid(uids: Sequence[int], rows: Iterable[Row]) -> dict[int, list[Name]]:
    """Kind, id, first and last uid: what each of `uids`, which are sorted, is called."""
    names: dict[int, list[Name]] = {uid: [] for uid in uids}
    for kind, name, first, last in rows:
        for uid in uids[bisect_left(uids, first) : bisect_right(uids, last)]:
            names[uid].append(Name(kind=kind, id=name))
    return names


def _standing(gaps: list[Gap]) -> list[Gap]:
    """Without those of instances that were silent, and then were heard again."""
    again = {gap.instance: gap.time_us for gap in gaps if gap.reason == HEARD_AGAIN}
    over = {SILENT, HEARD_AGAIN}
    return [gap for gap in gaps if gap.reason not in over or gap.time_us > again.get(gap.instance, 0)]


def _names(asked: str) -> set[str]:
    """As it is asked for, and if it can be a trace id as the conventions write these: so they are filed."""
    return {asked, asked.lower()} if _TRACE_ID.fullmatch(asked) else {asked}


def _from(hours: list[int], since_us: int) -> list[int]:
    begin = hour_of(since_us - _SLACK_US)
    return [hour for hour in hours if hour >= begin]


def _begins_in(rows: list[StageRow], window: list[int]) -> bool:
    """Whether an older window can have nothing more of the message."""
    if any(row.stage == "received" for row in rows):
        return True
    earliest = min(row.time_us for row in rows)
    routed = any(row.stage == "routed" for row in rows)
    return routed and hour_of(earliest - _SLACK_US) >= window[-1]


def _tidy(rows: list[StageRow]) -> list[StageRow]:
    once = {row.identity: row for row in rows}
    return sorted(once.values(), key=lambda row: (row.time_us, row.row))
