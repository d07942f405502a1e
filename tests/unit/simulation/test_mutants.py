"""Faults that are put back to see whether the simulation finds them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PATCHES = sorted((ROOT / "tests/simulation/mutants").glob("*.patch"))


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_it_fits(patch: Path) -> None:
    """Each fits the code as it is, and begins with what it breaks: one that has grown old finds nothing."""
    applied = subprocess.run(["git", "apply", "--check", patch], cwd=ROOT, capture_output=True, text=True, check=False)
    assert applied.returncode == 0, applied.stderr
    assert patch.read_text().partition("\n")[0].endswith(".")
