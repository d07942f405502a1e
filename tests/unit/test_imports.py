"""What a service imports at its start, others wait for, and it holds for ever: each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_NAME = "import json, sys; import services.{}.service; print(json.dumps(sorted(sys.modules)))"
# What is needed when a row is filed, looked up or analysed, when somebody asks over HTTP, when spans are on.
LATER = {"duckdb", "fastapi", "numpy", "opentelemetry", "pandas", "pyarrow", "pyspark", "starlette"}
OTHERS = {"store": {"aiosqlite", "sqlite3"}, "mgmt": {"uvicorn"}}
_FORKED = "import os, services.__main__ as main; main._import_services(); print(len(os.listdir('/proc/self/task')))"


def _imported(name: str) -> set[str]:
    return {module.partition(".")[0] for module in json.loads(_said(_NAME.format(name)))}


def _said(code: str) -> bytes:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60).stdout


@pytest.mark.parametrize("service", ["gateway", "router", "queue", "store", "mgmt"])
def test_what_a_service_imports(service: str) -> None:
    """Not what it may never need, nor what only others do."""
    theirs = {module for name, modules in OTHERS.items() if name != service for module in modules}
    assert _imported(service) & (LATER | theirs) == set()


def test_what_services_are_forked_from() -> None:
    """To import them all begins nothing: a thread, gRPC's or another one, would be missing in whoever is forked."""
    assert int(_said(_FORKED)) == 1
