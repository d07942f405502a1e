"""Histories that once broke a promise, made as short as could be; `--replay` tells more of one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KEPT = sorted((Path(__file__).parent / "kept").glob("*.json"))


@pytest.mark.parametrize("history", KEPT, ids=lambda path: path.stem)
def test_kept(history: Path) -> None:
    """What broke a promise does not break it again."""
    command = [sys.executable, "-m", "tests.simulation", "--replay", str(history), "--shrink", "0"]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
