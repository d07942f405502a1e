"""What a service imports at its start, others wait for, and it holds for ever: each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_NAME = "import json, sys; import services.common.log, services.{}.service; print(json.dumps(sorted(sys.modules)))"
# What is needed when a row is filed, looked up or analysed, when a request comes over HTTP, when spans are on.
LATER = {"duckdb", "fastapi", "numpy", "opentelemetry", "pandas", "pyarrow", "pyspark", "starlette"}
SHOWN = {"pygments", "rich"}  # what commands show their answers with
OTHERS = {"store": {"aiosqlite", "sqlite3"}, "mgmt": {"uvicorn"}}
_ASKED = """
import contextlib, json, sys, services.__main__ as main
with contextlib.suppress(SystemExit):
    main.app({})
print(json.dumps(sorted(sys.modules)))
"""
# What commands do without that ask a question: a person waits for the answer.
UNASKED = {"opentelemetry", "setproctitle", "structlog"}
_FILED = """
import sys, services.__main__ as main
main._serve = lambda *_: None
main.mgmt()
import duckdb, pyarrow, services.mgmt.ledger.decode, services.mgmt.ledger.parquet, services.mgmt.lookup.answers
rows = pyarrow.table({"uid": pyarrow.array([1, 2])})
assert duckdb.connect().register("rows", rows).execute("select sum(uid) from rows where uid > $least", {"least": 1})
print(len([name for name in ("numpy", "pandas") if sys.modules.get(name)]))
"""
_FORKED = "import os, services.__main__ as main; main._import_services(); print(len(os.listdir('/proc/self/task')))"


def _imported(name: str) -> set[str]:
    return {module.partition(".")[0] for module in json.loads(_said(_NAME.format(name)))}


def _said(code: str) -> bytes:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60).stdout


@pytest.mark.parametrize("service", ["gateway", "router", "queue", "store", "mgmt"])
def test_what_a_service_imports(service: str) -> None:
    """Not what it may never need, nor what only others do."""
    theirs = {module for name, modules in OTHERS.items() if name != service for module in modules}
    assert _imported(service) & (LATER | SHOWN | theirs) == set()


def test_what_filing_and_looking_up_import() -> None:
    """Neither pandas nor NumPy, which Arrow and DuckDB import where they are installed: 45 MB for good."""
    assert int(_said(_FILED)) == 0


def test_what_services_are_forked_from() -> None:
    """To import them all starts nothing: a thread, gRPC's or another one, would be missing in forked children."""
    assert int(_said(_FORKED)) == 1


@pytest.mark.parametrize("command", [["trace", "order-1"], ["users", "list"], ["vhosts", "list"], ["queues", "list"]])
def test_what_a_question_imports(command: list[str], tmp_path: Path) -> None:
    """Not what services log and trace with, nor any service."""
    code = _ASKED.format(command)
    said = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        timeout=60,
        env={**os.environ, "HOPLINE_DATA": str(tmp_path)},
    )
    modules = set(json.loads(said.stdout.splitlines()[-1]))
    assert {module.partition(".")[0] for module in modules} & (LATER | UNASKED) == set()
    assert {module for module in modules if module.endswith(".service")} == set()
