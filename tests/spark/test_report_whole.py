"""What the report counts and draws, it does of all rows of a table, of which the console is shown the first only."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark.errors import AnalysisError
from spark.report import whole
from spark.report.heading import heading
from spark.report.page import page
from spark.report.results import read_results
from spark.report.sections import sections

SHOWN = 1000
START = datetime(2026, 1, 31, 22, 50)  # noqa: DTZ001 - as results have it
VERDICT = {
    "whole": True, "promised": 10, "lost": 0, "unknown": 0, "in_flight": 0, "duplicated": 0, "gaps": 0,
    "begin": START, "end": START,
}  # fmt: skip


def _write(out: Path, analysis: str, **tables: list[dict[str, Any]]) -> None:
    """As an analysis does: all of each table, and the first rows of it."""
    folder = out / analysis
    folder.mkdir()
    for name, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
        (folder / f"{name}.json").write_text(json.dumps(rows[:SHOWN], default=datetime.isoformat))
    read = {"stages": {"files": 1, "rows": 2, "bytes": 3, "refused": []}}
    (folder / "summary.json").write_text(json.dumps({"ledger": "here", "inputs": read, "seconds": 1}))


def _fates(count: int) -> list[dict[str, Any]]:
    """The last queue has the most messages, and is not among the first rows."""
    return [
        {"virtual_host": "/", "queue": f"queue-{number:04}", "fate": "settled", "duplicate": "", "messages": number}
        for number in range(count)
    ]


def test_the_busiest_queue_is_the_last(tmp_path: Path) -> None:
    """Queues are drawn by what came to them, wherever in the table they are; the page shows the first rows."""
    _write(tmp_path, "audit", verdict=[VERDICT], fates=_fates(1500))
    found = read_results(str(tmp_path))
    [section] = sections(found)
    assert "queue-1499" in section.plots[0].picture
    assert "queue-0999" not in section.plots[0].picture
    assert len(section.tables["fates"]) == SHOWN
    assert not any("only the first" in sentence for sentence in section.says)
    assert "fates, the first 50 rows" in page(found)


def test_all_are_counted(tmp_path: Path) -> None:
    """In tiles and sentences; and what is said first is so by the table's own order, not by that of its files."""
    odd = [
        {
            "time": START + timedelta(minutes=number),
            "kind": "queue",
            "source": "q",
            "target": "",
            "sentence": f"S{number}",
        }
        for number in range(1200)
    ]
    _write(tmp_path, "anomalies", anomalies=odd, edges=[{"judged": 5000, "anomalies": 1200}])
    found = read_results(str(tmp_path))
    assert [tile.value for tile in heading(found).tiles if tile.name == "anomalies"] == ["1,200"]
    [section] = sections(found)
    assert section.says[0] == "1200 of 5,000 windows are unlike those before them."
    assert section.says[1].endswith("S1199")


def test_a_line_is_drawn_to_its_end(tmp_path: Path) -> None:
    """Of the queues that are drawn all windows are, however many there are of others."""
    queues = [
        {"virtual_host": "/", "queue": name, "enqueued": 9, "backlog": 0, "greatest_backlog": 1, "wait_p95_us": None,
         "growth_per_second": 0.0}
        for name in ("a", "b")
    ]  # fmt: skip
    backlog = [
        {"virtual_host": "/", "queue": name, "time": START + timedelta(minutes=number), "backlog": number}
        for number in range(1000)
        for name in ("a", "b")
    ]
    _write(tmp_path, "lag", queues=queues, backlog=backlog, consumers=[])
    [section] = sections(read_results(str(tmp_path)))
    assert f"{START + timedelta(minutes=999):%Y-%m-%d %H:%M:%S}" in section.plots[0].picture
    assert section.plots[0].picture.count(",") == 2000


def test_more_than_can_be_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a table with very many rows the first are counted, and that is said."""
    monkeypatch.setattr(whole, "MOST", 1100)
    _write(tmp_path, "audit", verdict=[VERDICT], fates=_fates(1500), suspects=_fates(1600))
    [section] = sections(read_results(str(tmp_path)))
    assert section.says[1:] == ["Of the 1,500 rows of fates only the first 1,100 are counted here."]


def test_damaged(tmp_path: Path) -> None:
    """A table that cannot be read is told in a line."""
    _write(tmp_path, "audit", verdict=[VERDICT], fates=_fates(1500))
    path = tmp_path / "audit/fates.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(AnalysisError, match=r"^.*fates\.parquet cannot be read: run the analysis again \(.*\)$"):
        read_results(str(tmp_path))
