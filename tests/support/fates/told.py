"""What look-ups say of every message of a ledger, read at once: one by one they would take minutes."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pq

from services.common.trace import Match
from services.mgmt.ledger.instances import SILENT
from services.mgmt.lookup.assemble import assemble, begin_of
from services.mgmt.lookup.blame import Follower
from services.mgmt.lookup.database import Database
from services.mgmt.lookup.fate import Record
from services.mgmt.lookup.hours import HOUR_US, hour_of
from services.mgmt.lookup.owners import Owners
from services.mgmt.lookup.search import Search, Telling
from services.mgmt.lookup.stage_row import StageRow
from services.mgmt.lookup.way import Way, follow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from services.common.trace import Copy, Gap, Journey, Message

_OF_MESSAGES = {"returned", "refused", "dropped", "rolled_back"}
_LATER_US = 3_600_000_000  # a look-up an hour later: nothing is too young to be judged
_ENDS = ("dead_lettered", "accepted", "expired", "dropped", "rejected")
_ENDS_ALONE = {"expired", "dropped", "dead_lettered"}
_AS_AUDITED = {"accepted": "settled"}


class Said(NamedTuple):
    """Of one copy; `fate` as the audit names it, `gap` the instance whose gap is to blame."""

    uid: int
    queue: str
    fate: str
    gap: str


class Fate:
    """All that is said of the messages of the ledger in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._rows = _Rows(folder)
        self._owners = Owners(self._rows)
        self._gaps = self._rows.all_gaps
        self.now_us = self._rows.end_us + _LATER_US
        self.uids = self._rows.uids
        self._said: dict[str, list[Said]] = {}

    def journey(self, uid: int) -> Journey:
        """As `hopline trace` tells it, but for the ids."""
        way = follow(self._rows, uid, None, lambda: False)
        match = _match(uid)
        gaps = [gap for gap in self._gaps if gap.time_us >= begin_of(way, match)]
        return assemble(match, way, self._record(gaps))

    def of(self, name: str) -> list[Said]:
        """Of each copy of the message that has this id; of one that got into none, its end."""
        if name not in self._said:
            self._said[name] = list(self._of(name))
        return self._said[name]

    def _of(self, name: str) -> Iterator[Said]:
        if name in self.uids:
            yield from of_journey(self.journey(self.uids[name]))
        else:
            yield Said(0, "", "unknown" if self._gaps else "", _first_gateway(self._gaps))

    def _record(self, gaps: list[Gap]) -> Record:
        rows, owners = self._rows, self._owners
        known = {"owners": owners.of, "tellers": owners.since, "takes_over": owners.takes_over}
        return Record(gaps, rows.followers, self.now_us, rows.ends_alone, **known)

    def everything(self) -> Iterator[Said]:
        """Of every copy on record, by any of its ids."""
        for uid in self._rows.all_uids():
            journey = assemble(_match(uid), self._way(uid), self._record(self._gaps))
            yield from (said for said in of_journey(journey) if said.uid == uid)

    def _way(self, uid: int) -> Way:
        """It, and what it was sent on from."""
        before = [one for row in self._rows.successions_to(uid, 0) for one in row.predecessors_of(uid)][:1]
        rows = {one: self._rows.rows_of(one) for one in (uid, *before)}
        return Way(rows, {uid: before[0]} if before else {})


def _match(uid: int) -> Match:
    return Match(uid=uid, kind="uid", time_us=None)


def of_journey(journey: Journey) -> Iterator[Said]:
    """Of every copy of every message of it."""
    for message in journey.messages:
        own = [step.stage for step in message.steps if step.stage in _OF_MESSAGES and not step.queue]
        for copy in message.copies:
            yield Said(message.uid, copy.queue, _fate(message, copy, own), copy.gap.instance if copy.gap else "")
        if not message.copies:
            gap = journey.gaps[0].instance if journey.gaps else ""
            yield Said(message.uid, "", own[0] if own else "unknown" if gap else "not_enqueued", gap)


def _fate(message: Message, copy: Copy, own: list[str]) -> str:
    steps = [step for step in message.steps if step.queue == copy.queue]
    if own and not {step.stage for step in steps} & {"enqueued", "recovered"}:
        return own[0]
    if not copy.ended:
        return copy.fate or "not_enqueued"
    # What an owner says late that lost the partition is not the last word of a copy that the next one had.
    in_order = sorted(steps, key=lambda step: step.epoch or 0)
    ends = {step.outcome or step.stage: step.reason for step in in_order}
    end = next(one for one in _ENDS if one in ends)
    # What its owner no longer had when it came back, it let go of.
    return "lost (transient)" if (end, ends[end]) == ("dropped", "no_owner") else _AS_AUDITED.get(end, end)


def _first_gateway(gaps: list[Gap]) -> str:
    return next((gap.instance for gap in gaps if gap.service == "gateway"), "")


class _Rows(Search):
    """The search of a look-up, over rows in memory."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Database(folder))
        self.all_gaps = self.gaps(0)
        self.uids = {row["id"]: row["first_uid"] for row in _read(folder, "ids") if row["kind"] == "message_id"}
        self._of: defaultdict[int, list[StageRow]] = defaultdict(list)
        self._to: defaultdict[int, list[StageRow]] = defaultdict(list)
        self._followers: defaultdict[int, list[Follower]] = defaultdict(list)
        self._tellings: defaultdict[int, dict[tuple[int, int, str], Telling]] = defaultdict(dict)
        self._handed: dict[tuple[int, int], int] = {}
        self._ending_alone: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self.end_us = 0
        for row in _read(folder, "stages"):
            time_us = int(row["time"].timestamp() * 1e6)
            self.end_us = max(self.end_us, time_us)
            if row["stage"] == "taken_over":
                self._followers[row["partition"]].append(Follower(time_us, row["epoch"], row["instance"]))
            if row["stage"] == "handed_over":
                self._handed[row["partition"], row["epoch"]] = time_us
            if row["service"] == "queue" and row["epoch"] and row["partition"] >= 0:
                self._tell((row["partition"], row["epoch"], row["instance"]), time_us)
            alone = row["service"] == "queue" and row["stage"] in _ENDS_ALONE
            if alone and row["reason"] not in {"rejected", "no_owner"}:
                self._ending_alone[row["virtual_host"], row["queue"]].add(hour_of(time_us))
            if row["uids"]:
                self._add(StageRow(time_us, *(row[name] for name in list(StageRow.__dataclass_fields__)[1:])))

    def _add(self, row: StageRow) -> None:
        for one in row.uids:
            for uid in range(one["first"], one["last"] + 1):
                self._of[uid].append(row)
        for one in row.successors:
            for uid in range(one["first"], one["last"] + 1):
                self._to[uid].append(row)

    def _tell(self, teller: tuple[int, int, str], time_us: int) -> None:
        tellings = self._tellings[hour_of(time_us)]
        before = tellings.get(teller, Telling(*teller, time_us, time_us))
        first, last = min(before.first_us, time_us), max(before.last_us, time_us)
        tellings[teller] = Telling(*teller, first, last)

    def ends_alone(self, virtual_host: str, queue: str, since_us: int, until_us: int) -> bool:
        begin, end = hour_of(since_us - HOUR_US), hour_of(until_us)
        return any(begin <= hour <= end for hour in self._ending_alone[virtual_host, queue])

    def all_uids(self) -> list[int]:
        return sorted(self._of)

    def rows_of(self, uid: int, since_us: int | None = None) -> list[StageRow]:
        return sorted(self._of[uid], key=lambda row: (row.time_us, row.row))

    def successions_to(self, uid: int, time_us: int) -> list[StageRow]:
        return self._to[uid]

    def followers(self, partition: int, epoch: int, since_us: int) -> list[Follower]:
        later = [one for one in self._followers[partition] if one.epoch > epoch and one.time_us >= since_us - 3.6e9]
        return sorted(later, key=lambda one: one.epoch)

    def taken_over(self) -> dict[int, list[Follower]]:
        return self._followers

    def handed_over(self, first_hour: int, last_hour: int) -> dict[tuple[int, int], int]:
        return self._handed

    def hours(self, first: int, last: int) -> list[int]:
        return sorted((hour for hour in self._tellings if first <= hour <= last), reverse=True)

    def told(self, first_hour: int, last_hour: int) -> list[Telling]:
        some = (of_hour for hour, of_hour in self._tellings.items() if first_hour <= hour <= last_hour)
        return [telling for of_hour in some for telling in of_hour.values()]

    def told_since(self, partition: int, epoch: int, first_hour: int, last_hour: int) -> list[Telling]:
        told = self.told(first_hour, last_hour)
        return [one for one in told if one.partition == partition and one.epoch > epoch]

    def missed(self, instance: str, since_hour: int) -> list[Gap]:
        return [gap for gap in self.all_gaps if (gap.instance, gap.reason) == (instance, SILENT)]


def _read(folder: Path, table: str) -> Iterator[dict[str, Any]]:
    """Row by row, equal texts as one: of an hour there are millions."""
    for path in sorted(folder.glob(f"{table}/date=*/hour=*/[!._]*.parquet")):
        for row in pq.ParquetFile(path).read().to_pylist():
            yield {name: intern(value) if isinstance(value, str) else value for name, value in row.items()}
