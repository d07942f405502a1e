from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from spark.errors import NothingToRead
from spark.generate.files import write
from spark.generate.plan import Plan
from spark.report.command import run_all, write_report
from spark.report.words import count, duration
from spark.run import Sources

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
    _hostile(tmp_path / "out")


def _hostile(out: Path) -> None:
    """Names that are code stay names, wherever they are shown."""
    for file in out.glob("*/*.json"):
        file.write_text(file.read_text().replace('"queue-0"', json.dumps(HOSTILE)).replace("producer-1", HOSTILE))
    text = Path(write_report(str(out))).read_text()
    assert "alert(1)" in text
    assert not re.search("<script", text)
    assert Page(text).open == []


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


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0"), (1234, "1,234"), (12_345, "12.3 k"), (4_560_000, "4.56 M"), (2.5, "2.5")]
)
def test_counts(number: float, words: str) -> None:
    """Numbers have three digits that matter."""
    assert count(number) == words


@pytest.mark.parametrize(("micros", "words"), [(12, "12 µs"), (3400, "3.4 ms"), (5.6e6, "5.6 s"), (None, "")])
def test_durations(micros: float | None, words: str) -> None:
    """Times have the unit that fits."""
    assert duration(micros) == words
