"""A fixed set of histories; `make simulate` runs any number of others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HISTORIES = 160


@pytest.mark.timeout(1800)
def test_histories(tmp_path: Path) -> None:
    """With any faults, no promise is broken; and a seed gives the same history twice."""
    command = [
        sys.executable,
        "-m",
        "tests.simulation",
        "--from",
        "1",
        "--count",
        str(HISTORIES),
        "--shrink",
        "0",
        "--go-on",
    ]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
