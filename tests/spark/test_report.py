from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from spark.errors import AnalysisError, NothingToRead
from spark.generate.files import write
from spark.generate.plan import Plan
from spark.job import Job
from spark.report import command
from spark.report.command import run_all, write_report
from spark.report.heading import heading
from spark.report.page import page
from spark.report.results import Found
from spark.report.sections import sections
from spark.report.svg import NARROW, WIDTH, Bar, bars, lines, short
from spark.report.words import count, duration
from spark.run import Result, Sources
from tests.support.browser import serving_pages, visit
from tests.support.ports import free_port

TITLES = (
    "What became of every message",
    "Who depends on whom",
    "Hot partitions",
    "Lag and slow consumers",
    "Failovers",
    "Redeliveries",
    "Fan-out",
    "Anomalies",
    "How far the record can be trusted",
)
HOSTILE = "<script>alert(1)</script>"


class Page(HTMLParser):
    """What a browser would fetch, and whether every element is closed."""

    VOID = ("meta", "br", "link", "img", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.kinds: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.kinds.add(tag)
        assert not {"src", "href", "xlink:href"} & {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.timeout(900)
def test_page(spark: SparkSession, tmp_path: Path) -> None:
    """Every analysis that there is runs over a ledger, and all of it is on a page that needs nothing else."""
    write(Plan(rows=5_000, queues=4, skew=0.5, gaps=1), str(tmp_path / "ledger"))
    said = StringIO()
    run_all(spark, Sources(str(tmp_path / "ledger")), str(tmp_path / "out"), (), Console(file=said))
    text = Path(write_report(str(tmp_path / "out"))).read_text()
    page = Page(text)
    assert page.open == []
    assert "script" not in page.kinds
    assert "url(" not in text
    for title in TITLES:
        assert f"<h2>{title}</h2>" in text
    assert text.count("<svg") >= 8
    assert all(f"{name} " in said.getvalue() for name in ("audit", "quality"))
    _on_a_telephone(tmp_path / "out")
    _hostile(tmp_path / "out")


def _on_a_telephone(out: Path) -> None:
    """In a browser that is 390 pixels wide nothing is beside the page but what scrolls, and nothing is cut off."""
    with serving_pages(free_port(), out) as server:
        said = visit(server, "width.html", out.with_name("profile"), of="report.html", width=390)
        narrow = visit(server, "width.html", out.with_name("another"), of="report.html", width=100)
    assert said["seen"] > 1000
    assert said["wide"] <= 390
    assert (said["outside"], said["cut"]) == ([], [])
    assert narrow["outside"]  # where there is no room, this is seen


def _hostile(out: Path) -> None:
    """Names that are code stay names, wherever they are shown."""
    for file in out.glob("*/*.json"):
        file.write_text(file.read_text().replace('"queue-0"', json.dumps(HOSTILE)).replace("producer-1", HOSTILE))
    text = Path(write_report(str(out))).read_text()
    assert "alert(1)" in text
    assert not re.search("<script", text)
    assert Page(text).open == []


def test_options_of_one_analysis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of all of them is asked of those that know it: as of when the record is judged."""
    asked: dict[str, object] = {}

    def run(_spark: object, found: Job, sources: Sources, _out: str) -> Result:
        asked[found.name] = sources.options
        return Result({}, {"seconds": 1.0})

    monkeypatch.setattr(command, "run", run)
    spark = cast("SparkSession", SimpleNamespace(sparkContext=None))
    sources = Sources("ledger", options={"as-of": "end"})
    run_all(spark, sources, str(tmp_path), ("audit", "lag"), Console(file=StringIO()))
    assert asked == {"audit": {"as-of": "end"}, "lag": {}}


def test_as_of_when() -> None:
    """The page says as of when the record was judged, and why then."""
    at = {"as_of": "2026-02-01T01:00:05", "as_of_why": "now, the record is live"}
    text = page({"audit": _found("audit", verdict=[{**VERDICT, **at}], fates=[])})
    assert "The record is whole. Judged as of 2026-02-01 01:00:05 (now, the record is live)." in text


def test_nothing_to_show(tmp_path: Path) -> None:
    """Where no analysis ran, that is said."""
    with pytest.raises(NothingToRead, match="no analysis"):
        write_report(str(tmp_path))


def test_other_analyses_are_tables(tmp_path: Path) -> None:
    """What the report knows nothing of, of a plug-in perhaps, is shown as it is."""
    folder = tmp_path / "of-a-plugin"
    folder.mkdir()
    read = {"stages": {"files": 1, "rows": 2, "bytes": 3, "refused": [{"path": "x.parquet", "reason": "truncated"}]}}
    (folder / "summary.json").write_text(json.dumps({"ledger": "here", "inputs": read, "seconds": 1}))
    (folder / "things.json").write_text(json.dumps([{"name": "one", "number": 12345, "is_it": True}]))
    text = Path(write_report(str(tmp_path))).read_text()
    assert "<h2>Of a plugin</h2>" in text
    assert ">12,345</td>" in text
    assert "Not read: x.parquet: truncated" in text


def _results(out: Path, name: str, summary: str) -> None:
    (out / name).mkdir()
    (out / name / "summary.json").write_text(summary)


def test_results_that_are_none(tmp_path: Path) -> None:
    """Beside those of analyses a stream leaves word how far it is; what is damaged is told in a line."""
    _results(tmp_path, "stream", json.dumps({"batch": 7, "record_end": "2026-01-31T22:50:00", "refused": []}))
    with pytest.raises(NothingToRead, match="no analysis"):
        write_report(str(tmp_path))
    read = {"stages": {"files": 1, "rows": 2, "bytes": 3, "refused": []}}
    _results(tmp_path, "of-a-plugin", json.dumps({"ledger": "here", "inputs": read, "seconds": 1}))
    assert "here: 2 rows in 1 file." in Path(write_report(str(tmp_path))).read_text()
    _results(tmp_path, "audit", '{"ledger": "he')
    with pytest.raises(AnalysisError, match=r"summary\.json is damaged: run the analysis again"):
        write_report(str(tmp_path))


VERDICT = {
    "whole": True, "promised": 10, "lost": 0, "unknown": 0, "in_flight": 0, "duplicated": 0, "gaps": 0,
    "missing_rows": 0, "begin": "2026-01-31T22:50:00+00:00", "end": "2026-02-01T01:00:04+00:00",
}  # fmt: skip


def _found(name: str, **tables: object) -> Found:
    read = {"stages": {"files": 1, "rows": 2, "bytes": 3, "refused": []}}
    return Found(name, tables, {"ledger": "here", "inputs": read})  # type: ignore[arg-type]


def _tones(**verdict: object) -> dict[str, tuple[str, str]]:
    audit = _found("audit", verdict=[{**VERDICT, **verdict}], fates=[])
    edges = [{"judged": verdict.get("judged", 0)}]
    tiles = heading({"audit": audit, "anomalies": _found("anomalies", anomalies=[], edges=edges)}).tiles
    return {tile.name: (tile.value, tile.tone) for tile in tiles}


@pytest.mark.parametrize(
    ("verdict", "tile", "shown"),
    [
        ({}, "lost", ("0", "good")),
        ({"whole": False, "gaps": 1}, "lost", ("0", "warn")),
        ({"lost": 2}, "lost", ("2", "bad")),
        ({}, "in doubt", ("0", "good")),
        ({"unknown": 7}, "in doubt", ("7", "warn")),
        ({"promised": 0}, "lost", ("not judged", "")),
        ({"promised": 0}, "in doubt", ("not judged", "")),
        ({"promised": 0}, "came twice", ("not judged", "")),
        ({"judged": 0}, "anomalies", ("not judged", "")),
        ({"judged": 9}, "anomalies", ("0", "good")),
    ],
)
def test_nothing_is_green_that_was_not_judged(verdict: dict[str, object], tile: str, shown: tuple[str, str]) -> None:
    """A tile is green where something was looked at and is well; what is in doubt has one of its own."""
    assert _tones(**verdict)[tile] == shown


@pytest.mark.parametrize(
    ("reason", "tone", "says"),
    [
        (
            "unreadable: cut off",
            "warn",
            "came twice.</p><p>1 file of the record could not be read: what is told there",
        ),
        ("a copy of x", "good", "The record is whole."),
    ],
)
def test_a_file_that_cannot_be_read(reason: str, tone: str, says: str) -> None:
    """Leaves in doubt that nothing is lost, and that what is lost truly is; one that is there twice does not."""
    audit = _found("audit", verdict=[VERDICT], fates=[])
    audit.summary["inputs"]["stages"]["refused"].append({"path": "y", "reason": reason})
    tiles = {tile.name: tile.tone for tile in heading({"audit": audit}).tiles}
    assert {tiles[name] for name in ("lost", "in doubt", "came twice", "gaps of record")} == {tone}
    assert tiles.get("files not read") == ("bad" if tone == "warn" else None)
    text = page({"audit": audit})
    assert says in text
    assert ("The record is whole" in text) == (tone == "good")


@pytest.mark.parametrize(("owners", "last"), [(6, "queue-5"), (8, "any other")])
def test_colours_of_owners(owners: int, last: str) -> None:
    """Each has one meaning: where there are more owners than colours, the last is of all others."""
    names = [f"queue-{number}" for number in range(owners)]
    told = [{"owner": name, "work": 1, "partitions": 1, "share": 0.1} for name in names]
    parts = [
        {"partition": number, "owner": name, "share": 0.1, "per_second": 1.0, "hottest_queue": "q"}
        for number, name in enumerate(names)
    ]
    [section] = sections({"partitions": _found("partitions", owners=told, partitions=parts, skew=[], moves=[])})
    assert section.plots[0].legend == list(enumerate([*names[:5], last]))
    assert all(f'class="t{number}"' in str(section.plots[0].picture) for number in range(6))


def test_longest_failover() -> None:
    """A partition has no owner also while nobody waits for it; a move in good order is no failover, however quiet."""
    moves = [
        {"partition": 1, "source": "a", "target": "b", "how": how, "recovered": 0, "waited": 0, **times}
        for how, times in (
            ("crash", {"silence_us": 80_000_000, "blocked_us": 2_040_000}),
            ("handed_over", {"silence_us": 900_000_000, "blocked_us": 1_000}),
        )
    ]
    found = {"failovers": _found("failovers", moves=moves)}
    tiles = {tile.name: tile.value for tile in heading(found).tiles}
    assert tiles == {"longest failover": "1.33 min", "longest wait in one": "2.04 s"}
    [section] = sections(found)
    assert "the longest without an owner was 1.33 min; the longest that anyone waited was 2.04 s" in section.says[0]


def test_which_time() -> None:
    """The top says of which time the record tells, with the date."""
    says = heading({"audit": _found("audit", verdict=[VERDICT], fates=[])}).says
    assert says == "here: 2 rows in 1 file, from 2026-01-31 22:50:00 to 2026-02-01 01:00:04 UTC."


def test_colours_are_explained() -> None:
    """Beside a plot whose colours mean something stands what, in these colours; each is in the style sheet."""
    fates = [
        {"queue": "q", "fate": fate, "messages": 1} for fate in ("settled", "unknown", "lost (transient)", "expired")
    ]
    text = page({"audit": _found("audit", verdict=[VERDICT], fates=fates)})
    explained = dict(re.findall(r'<i class="(\w+)"></i>([\w ]+)', text))
    drawn = set(re.findall(r'<rect class="(\w+)"', text))
    assert drawn
    assert drawn <= explained.keys()
    assert (explained["warn"], explained["t2"]) == ("in doubt", "lost ")
    assert all(f"i.{tone} {{" in text and f"svg .{tone}" in text for tone in drawn)


@pytest.mark.parametrize(("most", "last"), [(7, "7 times"), (9, "7 or more times")])
def test_colours_of_redeliveries(most: int, last: str) -> None:
    """Each has one meaning: where there are more numbers than colours, the last is of all that are greater."""
    chains = [{"queue": "q", "attempts": attempts, "messages": 1} for attempts in range(2, most + 1)]
    [section] = sections({"redeliveries": _found("redeliveries", chains=chains)})
    [plot] = section.plots
    assert [words for _, words in plot.legend] == [*(f"{attempts} times" for attempts in range(2, 7)), last]
    assert len({tone for tone, _ in plot.legend}) == 6
    colours = re.findall(r'<rect class="t(\d)"[^>]*><title>1 delivered (\d) times', plot.picture.split("</svg>")[0])
    assert {attempts: tone for tone, attempts in colours} == {
        str(attempts): str(min(attempts - 2, 5)) for attempts in range(2, most + 1)
    }


def test_bars_on_a_telephone() -> None:
    """Bars are drawn once more, as wide as a telephone, with names and values above them; each screen shows one."""
    drawn = bars([Bar("queue-1", [(3, 0, "")], "3"), Bar("queue-2", [(1, 0, "")], "1")])
    wide, narrow = drawn.split("</svg>")[:2]
    assert ('class="wide"' in wide, 'class="narrow"' in narrow) == (True, True)
    widths = [[float(one) for one in re.findall(r' width="([\d.]+)"', shown)] for shown in (wide, narrow)]
    assert widths[1][0] == NARROW - 1
    assert [round(second / first, 1) for first, second in widths] == [0.3, 0.3]
    text = page({"audit": _found("audit", verdict=[VERDICT], fates=[])})
    assert "svg.narrow { display: none; }" in text
    assert ".plot svg.wide { display: none; } .plot svg.narrow { display: block; width: 100%; }" in text


def test_nothing_leaves_its_card() -> None:
    """Names keep their beginnings and their ends, values have their room, and lines' names stay above the axis."""
    name = "a-queue-with-a-name-as-long-as-that-of-its-tenant.orders.eu-west-1.priority-7"
    drawn = bars([Bar(name, [(1, 0, "")], "412 µs · 3.1 ms · most 5.62 min"), Bar("b", [(9, 0, "")], "1")])
    for shown, width in zip(drawn.split("</svg>"), (WIDTH, NARROW), strict=False):
        [label, _, _, _] = _texts(shown)
        assert label[1].startswith("a-queue")
        assert label[1].endswith("iority-7")
        assert all(left >= 0 and right <= width for left, _, right in _texts(shown))
    now = datetime(2026, 1, 31, 22, 50)  # noqa: DTZ001 - as results have it
    drawn = lines({f"queue-{number}": [(now, 100.0), (now + timedelta(days=1), 0.0)] for number in range(6)}, "")
    assert all(float(top) <= 220 for top in re.findall(r'y="([\d.]+)"[^>]*>queue-\d', drawn))
    assert "2026-01-31 22:50:00" in drawn
    assert short("queue-1.orders", 1000) == "queue-1.orders"


def _texts(drawn: str) -> list[tuple[float, str, float]]:
    """Left end, words and right end, with letters as wide as they are on average."""
    found = re.findall(r'<text class="\w*" x="([\d.]+)" y="[\d.]+" text-anchor="(\w+)">([^<]*)', drawn)
    return [
        (float(at) - len(words) * 6.5 if anchor == "end" else float(at), words,
         float(at) if anchor == "end" else float(at) + len(words) * 6.5)
        for at, anchor, words in found
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0"), (1234, "1,234"), (1234.5, "1,234"), (12_345, "12.3 k"), (999_999, "1,000 k"), (4_560_000, "4.56 M"),
        (2.5, "2.5"),
    ],
)  # fmt: skip
def test_counts(number: float, words: str) -> None:
    """Numbers have three digits that matter."""
    assert count(number) == words


@pytest.mark.parametrize(
    ("micros", "words"),
    [(12, "12 µs"), (3400, "3.4 ms"), (999_900, "1,000 ms"), (5.6e6, "5.6 s"), (4.3e12, "1,194 h"), (None, "")],
)
def test_durations(micros: float | None, words: str) -> None:
    """Times have the unit that fits."""
    assert duration(micros) == words


def test_names_of_processes_have_their_room() -> None:
    """These are digits, which are wider than letters: a label that ends at its bar must not begin before its card."""
    name = "gateway-1-3f60b2a4 → queue-2-8d41c07e"
    for rows in ([name], [name, "b"]):
        drawn = bars([Bar(each, [(1, 0, "")], "1") for each in rows]).split("</svg>")[0]
        label = _texts(drawn)[0]
        assert len(label[1]) * 7.7 <= label[2]


def test_a_point_is_no_line() -> None:
    """What has one value is seen, too."""
    drawn = str(lines({"q": [(datetime(2026, 2, 1, tzinfo=UTC), 3.0)]}, ""))
    assert '<circle class="t0"' in drawn


def test_what_is_aside_shows_that_it_is() -> None:
    """Boxes that scroll have a shadow where there is more: on a telephone nothing else tells."""
    style = page({"audit": _found("audit", verdict=[VERDICT], fates=[])}).partition("</style>")[0]
    boxes = style.partition(".scroll, .plot {")[2].partition("}")[0]
    assert (boxes.count(" local"), boxes.count(" scroll")) == (2, 2)


def test_commands_on_a_telephone() -> None:
    """They are broken into lines there: none is cut, so that its end is missing."""
    narrow = page({"audit": _found("audit", verdict=[VERDICT], fates=[])}).partition("@media (max-width: 760px)")[2]
    assert "pre { white-space: pre-wrap; overflow-wrap: anywhere; }" in narrow.partition("</style>")[0]


def test_one_is_no_several() -> None:
    """A gap, and a message, are told as one."""
    audit = _found("audit", verdict=[VERDICT | {"gaps": 1}], fates=[])
    suspects = [{"first_uid": 1, "last_uid": 1}]
    redeliveries = _found("redeliveries", chains=[], dead_letters=[], suspects=suspects)
    told = [says for one in sections({"audit": audit, "redeliveries": redeliveries}) for says in one.says]
    assert "the record has 1 gap;" in told[0]
    assert told[-1] == "1 message is suspect: delivered again and again, and never settled."
