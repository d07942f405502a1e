"""A page of results that are there, made beside a run that writes to the same folder: `follow` does all the time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark.alone import alone, at_work
from spark.cli import app
from spark.errors import AnalysisError
from spark.output import forget_summary, write_summary
from spark.registry import job
from spark.report import command, results
from spark.report.command import write_report

AUDIT = job("audit")
READ = {"stages": {"files": 1, "rows": 2, "bytes": 3, "refused": []}}
SUMMARY = {"ledger": "here", "inputs": READ, "seconds": 1}


@pytest.fixture
def out(tmp_path: Path) -> str:
    """Where an audit and fan-out have left results."""
    for name in ("audit", "fan-out"):
        write_summary(job(name), SUMMARY, str(tmp_path))
        for table in job(name).outputs:
            (tmp_path / name / f"{table}.json").write_text(json.dumps([]))
    return str(tmp_path)


def _page(out: str, told: str = "") -> str:
    ended = CliRunner().invoke(app, ["report", "--no-run", "--out", out])
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, f"{out}/report.html\n", told)
    return Path(out, "report.html").read_text()


def test_beside_a_run(out: str) -> None:
    """A page without a run is of what is finished: also of what a run holds that has not begun to write, and without
    what it writes; all of that is on the next page. The run is told of, as long as it is at work.
    """
    both, told = (
        ("<h2>What became of every message</h2>", "<h2>Fan-out</h2>"),
        "a run is at work on audit: the page has ",
    )
    told += "what was finished before\n"
    with alone(out, "audit"):
        assert all(title in _page(out, told) for title in both)
        forget_summary(AUDIT, out)
        assert [title in _page(out, told) for title in both] == [False, True]
        write_summary(AUDIT, SUMMARY, out)
        assert all(title in _page(out, told) for title in both)
    assert all(title in _page(out) for title in both)


def test_beside_several_runs(out: str) -> None:
    """Of all of them is told; to look for them makes no folder, and keeps no run from its own."""
    with alone(out, "fan-out"), alone(out, "latencies"):
        assert at_work(out, ["audit", "fan-out", "latencies", "trace-quality"]) == ["fan-out", "latencies"]
    assert not Path(out, "trace-quality").exists()
    assert at_work(out, ["audit", "fan-out"]) == at_work("s3://elsewhere", ["audit"]) == []
    with alone(out, "audit"):
        pass


def _begun(out: str) -> None:
    forget_summary(AUDIT, out)
    Path(out, "audit/fates.json").write_text("[")


def _begun_and_ended(out: str) -> None:
    forget_summary(AUDIT, out)
    write_summary(AUDIT, {**SUMMARY, "seconds": 2.5}, out)


@pytest.mark.parametrize("replace", [_begun, _begun_and_ended])
@pytest.mark.parametrize("while_it", ["lists", "counts", "draws"])
def test_replaced_while_read(
    out: str, monkeypatch: pytest.MonkeyPatch, replace: Callable[[str], None], while_it: str
) -> None:
    """No page is made of two runs: where one begins, or has ended, while the page is made, that is said in a line."""
    module, name = {"lists": (results, "_tables"), "counts": (results, "_whole"), "draws": (command, "page")}[while_it]
    done = getattr(module, name)

    def replacing(*given: object) -> object:
        replace(out)
        return done(*given)

    monkeypatch.setattr(module, name, replacing)
    ended = CliRunner().invoke(app, ["report", "--no-run", "--out", out])
    assert (ended.exit_code, ended.stderr) == (1, f"{out}/audit was written anew while it was read: ask again\n")
    assert not Path(out, "report.html").exists()


def test_damaged(out: str) -> None:
    """What nobody writes anew is damaged, and called so."""
    Path(out, "audit/fates.json").write_text("[")
    with pytest.raises(AnalysisError, match=r"fates\.json is damaged: run the analysis again, or remove its folder$"):
        write_report(out)
