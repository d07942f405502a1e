from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from suites.failure import NotRun
from suites.junit import read_junit
from suites.kinds.go import Go
from suites.kinds.rspec import RSpec
from suites.outcome import Outcome, Results

NESTED = """<testsuites><testsuite name="Connect"><testsuite name="API">
<testcase name="works" classname="test"/>
<testcase name="refused" classname="test"><failure message="ECONNREFUSED">at line 3</failure></testcase>
</testsuite></testsuite></testsuites>"""
CLASSES = """<testsuites><testsuite name="pytest">
<testcase classname="t.TestIt" name="test_a"/>
<testcase classname="t.TestIt" name="test_a"><error message="torn"/></testcase>
<testcase classname="t.TestIt" name="test_b"><skipped/></testcase>
</testsuite></testsuites>"""


def test_nested_suites_are_part_of_a_name(tmp_path: Path) -> None:
    """Node's runner has the same sentence in several suites: the names of those tell them apart."""
    (tmp_path / "report").write_text(NESTED)
    results = read_junit(tmp_path / "report")
    assert results["Connect API works"].outcome is Outcome.passed
    assert results["Connect API refused"].text == "ECONNREFUSED\nat line 3"


def test_of_several_with_one_name_the_worst_counts(tmp_path: Path) -> None:
    """A test that passed and could not be torn down has failed; a skipped one is skipped."""
    (tmp_path / "report").write_text(CLASSES)
    results = read_junit(tmp_path / "report")
    assert results["t.TestIt test_a"].outcome is Outcome.failed
    assert results["t.TestIt test_b"].outcome is Outcome.skipped


@pytest.mark.parametrize("read", [read_junit, RSpec().read, Go().read])
def test_no_report_is_no_success(tmp_path: Path, read: Callable[[Path], Results]) -> None:
    """A runner that left no report, or one that ran nothing, has not run its suite."""
    with pytest.raises(NotRun):
        read(tmp_path / "report")


def test_rspec(tmp_path: Path) -> None:
    """Examples by their whole sentence; pending ones are skipped."""
    examples = [
        {"full_description": "Queue declares", "status": "passed"},
        {"full_description": "Queue deletes", "status": "failed", "exception": {"message": "404"}},
        {"full_description": "Queue waits", "status": "pending"},
    ]
    (tmp_path / "report").write_text(json.dumps({"examples": examples, "summary_line": "3 examples"}))
    told = RSpec().read(tmp_path / "report")
    assert [(one.outcome, one.text) for one in told.values()] == [
        (Outcome.passed, ""),
        (Outcome.failed, "404"),
        (Outcome.skipped, ""),
    ]


def test_go(tmp_path: Path) -> None:
    """Events of tests count, with what a test printed; a test without an end has panicked; other lines do not count."""
    events = [
        {"Action": "output", "Test": "TestDial", "Output": "refused\n"},
        {"Action": "fail", "Test": "TestDial"},
        {"Action": "pass", "Test": "TestParse"},
        {"Action": "run", "Test": "TestFlow"},
        {"Action": "output", "Test": "TestFlow", "Output": "panic: no error\n"},
        {"Action": "fail"},
    ]
    (tmp_path / "report").write_text("\n".join(["# a warning", *map(json.dumps, events)]))
    told = Go().read(tmp_path / "report")
    assert told["TestDial"].outcome is Outcome.failed
    assert told["TestDial"].text == "refused"
    assert told["TestFlow"].outcome is Outcome.failed
    assert set(told) == {"TestDial", "TestFlow", "TestParse"}
