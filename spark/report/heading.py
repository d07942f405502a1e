"""The top of the report: what was looked at, and the numbers that one asks for first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spark.moves import HANDED_OVER
from spark.report.results import Found, Row
from spark.report.words import count, duration, moment

_NOT_JUDGED = "not judged"


class Tile(NamedTuple):
    """A number that one asks for first."""

    name: str
    value: str
    tone: str = ""  # good, bad, warn


@dataclass(frozen=True, slots=True)
class Heading:
    """What stands above all sections."""

    title: str
    says: str
    tiles: Sequence[Tile]
    refused: Sequence[str]  # files that could not be read, and why


def heading(results: Mapping[str, Found]) -> Heading:
    """Of all that was found."""
    latest = max(results.values(), key=lambda found: int(found.summary["inputs"]["stages"]["rows"]))
    stages = latest.summary["inputs"]["stages"]
    files = f"{stages['files']} file{'s' * (stages['files'] != 1)}"
    says = f"{latest.summary['ledger']}: {count(stages['rows'])} rows in {files}"
    says += _range(results)
    for word in ("since", "until"):
        if latest.summary.get(word):
            says += f", {word} {moment(latest.summary[word])}"
    refused = [
        f"{one['path']}: {one['reason']}" for read in latest.summary["inputs"].values() for one in read["refused"]
    ]
    return Heading("What the ledger says", says + ".", list(_tiles(results)), refused)


def _range(results: Mapping[str, Found]) -> str:
    """Of which time the record tells, in UTC, as far as an analysis says."""
    verdict = results["audit"].table("verdict") if "audit" in results else ()
    told = [(row["begin"], row["end"]) for row in verdict if row.get("begin") and row.get("end")]
    return "".join(f", from {moment(begin)} to {moment(end)} UTC" for begin, end in told)


def _tiles(results: Mapping[str, Found]) -> Iterator[Tile]:
    if audit := results.get("audit"):
        for row in audit.table("verdict"):
            yield from _verdict(row, audit.unread)
    if lag := results.get("lag"):
        waits = [row["wait_p95_us"] for row in lag.table("queues") if row["wait_p95_us"]]
        yield Tile("longest wait, p95", duration(max(waits)) if waits else "none")
    if failovers := results.get("failovers"):
        silence, blocked = longest(failovers.table("moves"))
        yield Tile("longest failover", duration(silence) if silence else "none")
        yield Tile("longest wait in one", duration(blocked) if blocked else "none")
    if anomalies := results.get("anomalies"):
        found = len(anomalies.table("anomalies"))
        judged = sum(row["judged"] for row in anomalies.table("edges"))
        tile = _judged("anomalies", found, "warn", sure=not anomalies.unread)
        yield tile if judged else Tile("anomalies", _NOT_JUDGED)


def longest(moves: Sequence[Row]) -> tuple[int, int]:
    """How long a partition had no owner, where its move was not in good order, and how long anyone waited in a move."""
    silences = [row["silence_us"] for row in moves if row["how"] != HANDED_OVER]
    return max(silences, default=0), max((row["blocked_us"] for row in moves), default=0)


def _verdict(row: Row, unread: int) -> Iterator[Tile]:
    promised, read = row["promised"], not unread
    yield Tile("copies promised", count(promised))
    if promised:
        # Where the record has gaps, or files that cannot be read, that none is lost is not known.
        yield _judged("lost", row["lost"], "bad", sure=row["whole"] and read)
        yield _judged("in doubt", row["unknown"], "warn", sure=read)
        yield _judged("came twice", row["duplicated"], "bad", sure=read)
    else:
        yield from (Tile(name, _NOT_JUDGED) for name in ("lost", "in doubt", "came twice"))
    yield _judged("gaps of record", row["gaps"], "warn", sure=read)
    if unread:
        yield Tile("files not read", count(unread), "bad")


def _judged(name: str, found: int, tone: str, *, sure: bool) -> Tile:
    """Green where there is none, for sure."""
    return Tile(name, count(found), tone if found else "good" if sure else "warn")
