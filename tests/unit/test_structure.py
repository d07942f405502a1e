from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("examples", "services", "spark", "tests", "benchmarks", "suites")
LONGEST_FILE = 400
LONGEST_FUNCTION = 50
WITH_README = [
    "",
    "proto",
    "tests",
    "benchmarks",
    "deploy",
    "examples",
    "examples/tracing",
    "spark",
    "suites",
    *(f"services/{name}" for name in ("gateway", "router", "queue", "store", "mgmt", "common", "cli", "supervisor")),
]


def _sources(*folders: str) -> list[Path]:
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if ROOT / "services/rpc" not in path.parents)


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_files_are_short() -> None:
    """No file has more than 400 lines."""
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in _sources(*OURS)}
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_functions_are_short() -> None:
    """No function has more than 50 lines."""
    long = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path in _sources(*OURS)
        for function in _functions(path)
        if (function.end_lineno or 0) - function.lineno + 1 > LONGEST_FUNCTION
    ]
    assert long == []


@pytest.mark.parametrize("folder", WITH_README)
def test_readme(folder: str) -> None:
    """Every part of the house says on one screen what it is."""
    lines = (ROOT / folder / "README.md").read_text().splitlines()
    assert lines[0].startswith("# ")
    assert len(lines) <= (200 if not folder else 60)


def test_services_do_not_print() -> None:
    """What a service has to say goes to the log."""
    printing = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _sources("services")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


def test_tests_say_what_they_prove() -> None:
    """Every test has a docstring: the claim that it proves."""
    silent = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path in _sources("tests")
        if path.name.startswith("test_")
        for function in _functions(path)
        if function.name.startswith("test_") and not ast.get_docstring(function)
    ]
    assert silent == []


@pytest.mark.parametrize("folder", ["data", "backups", "analyses"])
def test_what_a_run_leaves_is_not_committed(folder: str) -> None:
    """Folders that commands write to where none is said are ignored: an analysis was in the repository once."""
    assert f"/{folder}/" in (ROOT / ".gitignore").read_text().splitlines()
