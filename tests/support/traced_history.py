"""What a look-up says of a history."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from services.common.trace import Gap, Match
from services.mgmt.lookup.assemble import assemble
from services.mgmt.lookup.blame import Follower
from services.mgmt.lookup.fate import Record
from services.mgmt.lookup.stage_row import StageRow
from services.mgmt.lookup.way import Way
from tests.support.histories import END, History
from tests.support.ledger_rows import START

_END_US = int((START + timedelta(seconds=END)).timestamp() * 1e6)


def traced(history: History, gaps: Iterable[dict[str, Any]]) -> tuple[str, str]:
    """The fate of the one message as the audit calls it, and whose of the gaps is to blame; "" where there is none."""
    rows = [_stage_row(row) for row in history.rows if row["uids"]]
    taken_over = [row for row in history.rows if row["stage"] == "taken_over"]
    followers = [Follower(_us(row["time"]), row["epoch"], row["instance"]) for row in taken_over]
    ordered = sorted((_gap(row) for row in gaps), key=lambda gap: gap.time_us)

    def followed(partition: int, epoch: int, since_us: int) -> list[Follower]:
        assert partition == history.number
        return [one for one in followers if one.epoch > epoch and one.time_us >= since_us]

    def heirs(_partition: int, epoch: int, *_times: int) -> list[Follower]:
        return [one for one in owners if one.epoch > epoch]

    match = Match(uid=history.uid, kind="uid", time_us=None)
    told = [row for row in history.rows if row["service"] == "queue" and row["epoch"]]
    first = {row["epoch"]: row for row in sorted(told, key=lambda row: row["time"], reverse=True)}
    owners = [Follower(_us(row["time"]), epoch, row["instance"]) for epoch, row in sorted(first.items())]
    record = Record(ordered, followed, _END_US, owners=lambda *_: owners, tellers=heirs)
    journey = assemble(match, Way({history.uid: rows} if rows else {}), record)
    if not journey.messages or not journey.messages[0].copies:
        return "unknown" if journey.gaps else "", journey.gaps[0].instance if journey.gaps else ""
    [copy] = journey.messages[0].copies
    return "settled" if copy.ended else copy.fate, copy.gap.instance if copy.gap else ""


def _stage_row(row: dict[str, Any]) -> StageRow:
    facts = {name: row[name] for name in StageRow.__dataclass_fields__ if name != "time_us"}
    return StageRow(time_us=_us(row["time"]), **facts)


def _gap(row: dict[str, Any]) -> Gap:
    names = ("service", "instance", "first_row", "last_row", "count", "reason")
    since_us = None if row["since"] is None else _us(row["since"])
    return Gap(time_us=_us(row["time"]), since_us=since_us, **{name: row[name] for name in names})


def _us(time: Any) -> int:
    return int(time.timestamp() * 1e6)
