"""Reads results in the form of JUnit, which most runners can write."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from suites.failure import NotRun
from suites.outcome import Outcome, Results, Told, add

if TYPE_CHECKING:
    from pathlib import Path


def read_junit(report: Path) -> Results:
    """The tests of a report; raises NotRun when it is not there or not whole."""
    try:
        root = ET.parse(report).getroot()
    except (OSError, ET.ParseError) as failure:
        raise NotRun(f"its runner wrote no readable report ({failure})") from failure
    results: Results = {}
    _enter(root, (), results)
    return results


def _enter(element: ET.Element, path: tuple[str, ...], results: Results) -> None:
    # Node nests suites, and the same sentence stands in several; pytest and PHPUnit tell the class of a test. A file
    # that Node cuts off is no suite but an element `undefined`.
    for child in element:
        if child.tag == "testcase":
            add(results, _name(child, path), _told(child))
        else:
            _enter(child, (*path, child.get("name", "")), results)


def _name(case: ET.Element, path: tuple[str, ...]) -> str:
    classname = case.get("classname", "")
    above = path if classname in {"", "test"} else (classname,)
    return " ".join(part for part in (*above, case.get("name", "")) if part)


def _told(case: ET.Element) -> Told:
    for child in case:
        if child.tag in {"failure", "error"}:
            return Told(Outcome.failed, f"{child.get('message', '')}\n{child.text or ''}".strip())
    if case.find("skipped") is not None:
        return Told(Outcome.skipped)
    return Told(Outcome.passed)
