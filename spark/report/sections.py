"""What the report says of each analysis: a sentence or two, plots, and the tables behind them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from spark.report.graph import dependency_graph
from spark.report.heading import longest
from spark.report.results import Found, Row
from spark.report.section import MOST_BARS, Legend, Plot, Section
from spark.report.svg import TONES, Bar, bars, columns, lines
from spark.report.times import critical_path, latency
from spark.report.words import count, duration, in_host, moment, percent, queue_of

_LINES = 6
_GROWN = 0.02  # of what came is still there: less is only what is on its way

# Tones of fates: what is well, what is on its way, what ended otherwise, what is wrong.
_TONE_OF_FATE: Mapping[str, int | str] = {
    "settled": "good",
    "waiting": 0,
    "unsettled": 5,
    "in_flight": 5,
    "lost": "bad",
    "lost (persisted)": "bad",
    "lost (transient)": 2,
    "unknown": "warn",
}

_ENDED_OTHERWISE = 4
_FATES = (
    ("good", "settled"),
    (0, "waiting"),
    (5, "on its way"),
    ("warn", "in doubt"),
    ("bad", "lost"),
    (2, "lost (transient)"),
    (_ENDED_OTHERWISE, "ended otherwise"),
)


def sections(results: Mapping[str, Found]) -> list[Section]:
    """Known analyses first, in the order in which one asks; then all others as tables."""
    known = [_built(results[name], build) for name, build in _BUILD.items() if name in results]
    others = [Section(_title(name), (), tables=found.tables) for name, found in results.items() if name not in _BUILD]
    return known + others


def _built(found: Found, build: Callable[[Found], Section]) -> Section:
    section = build(found)
    cut = [
        f"Of the {rows:,} rows of {name} only the first {len(found.table(name)):,} are counted here."
        for name, rows in found.cut.items()
    ]
    return replace(section, says=[*section.says, *cut])


def _title(name: str) -> str:
    return name.replace("-", " ").replace("_", " ").capitalize()


def _audit(found: Found) -> Section:
    queues: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in found.table("fates"):
        queues[queue_of(row) if row["queue"] else "(in no queue)"][row["fate"]] += row["messages"]
    busiest = sorted(queues, key=lambda queue: -queues[queue].total())[:MOST_BARS]
    drawn = [
        Bar(
            queue,
            [
                (size, _TONE_OF_FATE.get(fate, _ENDED_OTHERWISE), f"{size:,} {fate}")
                for fate, size in queues[queue].most_common()
            ],
            count(queues[queue].total()),
        )
        for queue in busiest
    ]
    says = [_verdict(row, found.unread) + _as_of(row) for row in found.table("verdict")]
    if found.unread:
        files = f"{found.unread} file{'s' * (found.unread > 1)} of the record"
        says.append(f"{files} could not be read: what is told there alone is not counted here.")
    return Section(
        "What became of every message", says, [Plot("Messages by queue", bars(drawn), _FATES)], (), found.tables
    )


def _verdict(row: Row, unread: int) -> str:
    if not row["promised"]:
        return "Nothing was promised to be safe: there was nothing to judge."
    account = f"Of {row['promised']:,} copies that were promised to be safe, {row['lost']:,} are lost"
    if row.get("lost_transient"):
        account += f" and {row['lost_transient']:,} transient ones went with the process that had them"
    twice = f"{row['duplicated']:,} came twice"
    if row["in_flight"]:
        twice += f", {row['in_flight']:,} are too young to judge"
    if not row["gaps"] and not unread:
        return f"{account} and {twice}. The record is whole."
    why = [f"the record has {row['gaps']:,} gap{'s' * (row['gaps'] != 1)}"] if row["gaps"] else []
    why += ["not all of it could be read"] if unread else []
    return f"{account}, {row['unknown']:,} more may be: {' and '.join(why)}; {twice}."


def _as_of(row: Row) -> str:
    """As results of older releases do not say."""
    return f" Judged as of {moment(row['as_of'])} ({row['as_of_why']})." if row.get("as_of") else ""


def _dependencies(found: Found) -> Section:
    edges = found.table("edges")
    publishes = [row for row in edges if row["kind"] == "publish"]
    says = [
        (
            f"{len(publishes)} pairs of applications and exchanges, "
            f"{sum(row['kind'] == 'consume' for row in edges)} pairs of queues and consumers. "
            "Wider is more messages."
        )
    ]
    services = [
        Bar(
            f"{row['source']} → {row['target'] or '?'}",
            [(row["messages"], 0 if row["kind"] == "enqueue" else 1, f"{row['messages']:,} messages")],
            f"{count(row['messages'])} · p95 {duration(row['p95_us'])}" if row["p95_us"] else count(row["messages"]),
        )
        for row in found.table("services")[:MOST_BARS]
    ]
    failing = [("bad", "more than one in a hundred failed")]
    carried = [(0, "from a gateway to a queue process"), (1, "from a queue process to a gateway")]
    plots = [
        Plot("Applications, exchanges, queues", dependency_graph(edges), failing),
        Plot("Services", bars(services), carried),
    ]
    return Section("Who depends on whom", says, plots, (), found.tables)


def _partitions(found: Found) -> Section:
    rows = sorted(found.table("partitions"), key=lambda row: row["partition"])
    names = [row["owner"] for row in found.table("owners")]
    # There are so many colours: the last is of all further owners.
    owners = {owner: min(number, TONES - 1) for number, owner in enumerate(names)}
    drawn = [
        (
            str(row["partition"]),
            100 * row["share"],
            owners.get(row["owner"], 0),
            (
                f"partition {row['partition']} of {row['owner']}: {percent(row['share'])} of the work, "
                f"{row['per_second']:,.0f} messages/s, most of it for {row['hottest_queue']}"
            ),
        )
        for row in rows
    ]
    by_owner = [
        Bar(
            row["owner"],
            [(row["work"], owners[row["owner"]], f"{row['partitions']} partitions")],
            percent(row["share"]),
        )
        for row in found.table("owners")
    ]
    says = [
        f"The busiest of {row['count']} {row['of']} has {percent(row['greatest_share'])} of the work, "
        f"{row['times_fair']:.1f} times a fair share (Gini {row['gini']:.2f})."
        for row in found.table("skew")
        if row["count"]
    ]
    commands = [row["command"] for row in found.table("moves")]
    says.append("To spread it better:" if commands else "No move of partitions would make it better.")
    known = names if len(names) <= TONES else [*names[: TONES - 1], "any other"]
    plots = [
        Plot("Share of the work by partition", columns(drawn, " %"), list(enumerate(known))),
        Plot("By owner", bars(by_owner)),
    ]
    return Section("Hot partitions", says, plots, commands, found.tables)


def _lag(found: Found) -> Section:
    queues = found.table("queues")
    names = [(row["virtual_host"], row["queue"]) for row in sorted(queues, key=_greatest_backlog)[:_LINES]]
    backlog: dict[str, list[tuple[datetime, float]]] = {}
    for host, queue in names:
        line = [
            (datetime.fromisoformat(row["time"]), row["backlog"])
            for row in found.of("backlog", virtual_host=host, queue=queue)
        ]
        if line:
            backlog[in_host(host, queue)] = sorted(line)
    waits = [
        Bar(
            queue_of(row),
            [
                (
                    row["wait_p95_us"],
                    0,
                    f"half within {duration(row['wait_p50_us'])}, all {duration(row['wait_max_us'])}",
                )
            ],
            duration(row["wait_p95_us"]),
        )
        for row in sorted(queues, key=lambda row: -(row["wait_p95_us"] or 0))[:MOST_BARS]
        if row["wait_p95_us"]
    ]
    slow = [row for row in found.table("consumers") if row["slow"]]
    growing = sum(row["growth_per_second"] > 0 and row["backlog"] > _GROWN * row["enqueued"] for row in queues)
    says = [f"Queues that grow: {growing} of {len(queues)}. Slow consumers: {len(slow)}."]
    says += [
        f"{row['client'] or row['connection']} ({row['consumer']}) on {queue_of(row)}: {row['why']}."
        for row in slow[:5]
    ]
    plots = [
        Plot("Messages waiting or held", lines(backlog, "")),
        Plot("Wait before delivery, 95th percentile", bars(waits)),
    ]
    return Section("Lag and slow consumers", says, plots, (), found.tables)


def _greatest_backlog(row: Row) -> int:
    return -int(row["greatest_backlog"])


def _failovers(found: Found) -> Section:
    moves = found.table("moves")
    drawn = [
        Bar(
            f"{row['partition']}: {row['source']} → {row['target']}",
            [(row["silence_us"], "bad" if row["how"] == "crash" else 0, f"{row['how']}, {row['recovered']:,} found")],
            duration(row["silence_us"]) + (f" · {count(row['waited'])} waited" if row["waited"] else ""),
        )
        for row in sorted(moves, key=lambda row: -row["silence_us"])[:MOST_BARS]
    ]
    crashes = sum(row["how"] == "crash" for row in moves)
    silence, blocked = longest(moves)
    says = [
        (
            f"{len(moves)} moves of partitions, {crashes} of them because an owner died; but for those in good order, "
            f"the longest without an owner was {duration(silence)}; the longest that anyone waited was "
            f"{duration(blocked)}."
        )
    ]
    hows: Legend = [("bad", "crash"), (0, "any other")]
    return Section(
        "Failovers", says, [Plot("Silence of a partition while it moved", bars(drawn), hows)], (), found.tables
    )


def _redeliveries(found: Found) -> Section:
    by_queue: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for row in found.table("chains"):
        by_queue[queue_of(row)][row["attempts"]] += row["messages"]
    busiest = sorted(by_queue, key=lambda queue: -by_queue[queue].total())[:MOST_BARS]
    often = sorted({attempts for counted in by_queue.values() for attempts in counted})
    tones = {attempts: min(number, TONES - 1) for number, attempts in enumerate(often)}
    drawn = [
        Bar(
            queue,
            [
                (size, tones[attempts], f"{size:,} delivered {attempts} times")
                for attempts, size in sorted(by_queue[queue].items())
            ],
            count(by_queue[queue].total()),
        )
        for queue in busiest
    ]
    suspects = sum(row["last_uid"] - row["first_uid"] + 1 for row in found.table("suspects"))
    circles = sum(row["circle"] for row in found.table("dead_letters"))
    are = "message is" if suspects == 1 else "messages are"
    says = [f"{suspects:,} {are} suspect: delivered again and again, and never settled."]
    if circles:
        says.append(f"Dead letters go around between queues in {circles} ways.")
    # There are so many colours: the last is of all that were delivered more often.
    last = " or more" if len(often) > TONES else ""
    times = [(tones[each], f"{each}{last * (tones[each] == TONES - 1)} times") for each in often[:TONES]]
    plots = [Plot("Messages delivered more than once", bars(drawn), times)]
    return Section("Redeliveries", says, plots, (), found.tables)


def _fan_out(found: Found) -> Section:
    drawn = [
        Bar(
            f"{in_host(row['virtual_host'], row['exchange'] or '(default)')} {row['routing_key']}",
            [(row["copies"], 0, f"{row['messages']:,} messages, {row['copies']:,} copies in {row['queues']} queues")],
            f"{row['amplification']:.2g} each" if row["messages"] else count(row["copies"]),
        )
        for row in sorted(found.table("publishes"), key=lambda row: -row["copies"])[:MOST_BARS]
        if row["copies"]
    ]
    return Section("Fan-out", (), [Plot("Copies by exchange and routing key", bars(drawn))], (), found.tables)


def _anomalies(found: Found) -> Section:
    told = [f"{moment(row['time'])}: {row['sentence']}" for row in found.table("anomalies")[:MOST_BARS]]
    windows = sum(row["judged"] for row in found.table("edges"))
    says = [f"{len(found.table('anomalies'))} of {windows:,} windows are unlike those before them.", *told]
    if not windows:
        says = ["Not judged: no window has enough others before it."]
    return Section("Anomalies", says, (), (), found.tables)


def _quality(found: Found) -> Section:
    instances = found.table("instances")
    whole = sum(row["whole"] for row in instances)
    apart = [row for row in found.table("clocks") if row["agree"] is False]
    says = [f"The record of {whole} of {len(instances)} instances is whole."]
    says += [
        f"The clock of {row['queue']} is {duration(row['offset_us'])} ahead of that of {row['gateway']} "
        f"(± {duration(row['uncertain_us'])})."
        for row in apart[:5]
    ]
    missing = [
        Bar(
            f"{queue_of(row)}: {row['stage']}",
            [(row["messages"], "warn", percent(row["share"]))],
            count(row["messages"]),
        )
        for row in found.table("missing")[:MOST_BARS]
    ]
    plots = [Plot("Messages of which a stage is missing", bars(missing))] if missing else []
    return Section("How far the record can be trusted", says, plots, (), found.tables)


def _traces(found: Found) -> Section:
    services = [_caused(row) for row in found.table("services")[:MOST_BARS]]
    orphans = sum(row["spans"] for row in found.table("orphans"))
    says = [f"{orphans:,} spans name a cause that is not on record."] if orphans else []
    vias: Legend = [(0, "caused by a parent"), (3, "by a link"), ("bad", "failed")]
    plots = [Plot("Spans by who caused them", bars(services), vias)] if services else []
    return Section("What the spans say", says, plots, (), found.tables)


def _caused(row: Row) -> Bar:
    tone = 0 if row["via"] == "parent" else 3
    parts: list[tuple[float, int | str, str]] = [
        (row["spans"] - row["errors"], tone, f"{row['spans']:,} spans: {row['operation']} {row['destination']}")
    ]
    if row["errors"]:
        parts.append((row["errors"], "bad", f"{row['errors']:,} failed"))
    told = f"{count(row['spans'])} · p95 {duration(row['p95_us'])}"
    return Bar(f"{row['from_service'] or '?'} → {row['to_service'] or '?'}", parts, told)


_BUILD: Mapping[str, Callable[[Found], Section]] = {
    "audit": _audit,
    "latency": latency,
    "critical-path": critical_path,
    "dependencies": _dependencies,
    "traces": _traces,
    "partitions": _partitions,
    "lag": _lag,
    "failovers": _failovers,
    "redeliveries": _redeliveries,
    "fan-out": _fan_out,
    "anomalies": _anomalies,
    "quality": _quality,
}
