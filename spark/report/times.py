"""What the report says of times: how long each hop takes, and where the whole time goes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle

from spark.report.results import Found, Row
from spark.report.section import MOST_BARS, Plot, Section
from spark.report.svg import Bar, bars
from spark.report.words import count, duration, percent, queue_of

_TONES: Mapping[str, int | str] = {"p50": 0, "p95": 1, "p99": "warn"}
_SPREAD = ((0, "half of the messages"), (1, "95 in a hundred"), ("warn", "99 in a hundred"))
_HOPS: Sequence[int | str] = (0, 1, 2, 3, 4, 5, "warn", "good")  # there are seven: each has a colour of its own
_WAYS = {"delivery": "to its consumer", "confirm": "back to its publisher as a confirm"}


def latency(found: Found) -> Section:
    """Hops beside one another, and the queues in which messages wait longest."""
    hops = [_spread(row["hop"], row) for row in found.table("all")]
    waits = [_spread(queue_of(row), row) for row in found.table("waits")[:MOST_BARS]]
    plots = [Plot("Each hop", bars(hops), _SPREAD), Plot("Waiting in a queue", bars(waits), _SPREAD)]
    return Section("How long it takes", (), plots, (), found.tables)


def _spread(label: str, row: Row) -> Bar:
    parts, before = [], 0
    for name, tone in _TONES.items():
        took = row[f"{name}_us"]
        parts.append((took - before, tone, f"{name} {duration(took)} of {row['messages']:,} messages"))
        before = took
    return Bar(label, parts, f"{duration(row['p50_us'])} · {duration(row['p99_us'])} · most {duration(row['max_us'])}")


def critical_path(found: Found) -> Section:
    """Of the ordinary message and of the slowest: which hop has most of the time, and what less of it would save."""
    ways: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in found.table("all"):
        ways[row["path"], row["of"]].append(row)
    names = sorted({str(row["hop"]) for row in found.table("all")})
    tones = dict(zip(names, cycle(_HOPS)))
    drawn = [_way(path, of, hops, tones) for (path, of), hops in ways.items()]
    plots = [Plot("Shares of the whole, hop by hop", bars(drawn), [(tone, name) for name, tone in tones.items()])]
    return Section("Where the time goes", list(_worst(ways)), plots, (), found.tables)


def _way(path: str, of: str, hops: Sequence[Row], tones: Mapping[str, int | str]) -> Bar:
    parts = [
        (hop["share"], tones[hop["hop"]], f"{hop['hop']}: {percent(hop['share'])}, {duration(hop['mean_us'])}")
        for hop in sorted(hops, key=lambda hop: str(hop["hop"]))
    ]
    return Bar(f"{path}, {of}", parts, f"{duration(hops[0]['whole_us'])} of {count(hops[0]['messages'])}")


def _worst(ways: dict[tuple[str, str], list[Row]]) -> Iterator[str]:
    for (path, of), hops in ways.items():
        most = max(hops, key=lambda hop: float(hop["share"]))
        yield (
            f"The {of} message takes {duration(most['whole_us'])} {_WAYS[path]}; {percent(most['share'])} of it is "
            f"{most['hop']}. Were that twice as fast, {duration(most['saved_us'])} would be saved."
        )
