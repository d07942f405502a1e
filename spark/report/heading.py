"""The top of the report: what was looked at, and the numbers that one asks for first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spark.report.results import Found
from spark.report.words import count, duration, moment


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
    says = f"{latest.summary['ledger']}: {count(stages['rows'])} rows in {stages['files']} files"
    for word in ("since", "until"):
        if latest.summary.get(word):
            says += f", {word} {moment(latest.summary[word])}"
    refused = [
        f"{one['path']}: {one['reason']}" for read in latest.summary["inputs"].values() for one in read["refused"]
    ]
    return Heading("What the ledger says", says + ".", list(_tiles(results)), refused)


def _tiles(results: Mapping[str, Found]) -> Iterator[Tile]:
    if audit := results.get("audit"):
        for row in audit.table("verdict"):
            yield Tile("copies promised", count(row["promised"]))
            yield Tile("lost", count(row["lost"]), "bad" if row["lost"] else "good" if row["whole"] else "warn")
            yield Tile("came twice", count(row["duplicated"]), "bad" if row["duplicated"] else "good")
            yield Tile("gaps of record", count(row["gaps"]), "warn" if row["gaps"] else "good")
    if lag := results.get("lag"):
        waits = [row["wait_p95_us"] for row in lag.table("queues") if row["wait_p95_us"]]
        yield Tile("longest wait, p95", duration(max(waits, default=0)))
    if failovers := results.get("failovers"):
        blocked = max((row["blocked_us"] for row in failovers.table("moves")), default=0)
        yield Tile("longest failover", duration(blocked) if blocked else "none")
    if anomalies := results.get("anomalies"):
        found = len(anomalies.table("anomalies"))
        yield Tile("anomalies", count(found), "warn" if found else "good")
