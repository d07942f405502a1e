from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
BY_HAND = "tests/upgrade/"


def make(*arguments: str) -> str:
    """What `make` says, of this folder and not of a `make test` that runs this."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = ["make", "--no-print-directory", *arguments]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return ran.stdout


def test_every_test_once() -> None:
    """`make test` runs every test there is, and none twice; but for those that are run by hand."""
    counts: Counter[str] = Counter()
    for command in re.findall(r"bin/pytest .*", make("--dry-run", "test")):
        left_out = re.findall(r"--ignore=(\S+)", command)
        chosen = re.findall(r" (tests/\S+)", command) or ["tests"]
        counts.update(set(_files(*chosen)) - set(_files(*left_out)))
    assert counts == Counter(file for file in _files("tests") if not file.startswith(BY_HAND))


def test_linters_in_ci() -> None:
    """What CI calls runs each of the linters once, beside the tests."""
    [command] = re.findall(r"^run_make (test .*)", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    ran = make("--dry-run", *command.split())
    linters = "ruff format --check", "ruff check", "mypy", "lint-imports"
    assert {linter: ran.count(f"bin/{linter}") for linter in linters} == dict.fromkeys(linters, 1)


def _files(*places: str) -> list[str]:
    every = (file.relative_to(ROOT).as_posix() for file in (ROOT / "tests").rglob("test_*.py"))
    return [file for file in every if any(f"{file}/".startswith(f"{place}/") for place in places)]


def test_what_is_compiled_is_kept(tmp_path: Path) -> None:
    """What `make` starts writes down what Python has compiled, whatever the shell says."""
    shows = tmp_path / "shows.mk"
    shows.write_text("shows:\n\t@env\n")
    assert "PYTHONDONTWRITEBYTECODE" not in make("--file=Makefile", f"--file={shows}", "shows")
