"""The health check of containers: quick until the first good answer, seldom from then on."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

SELDOM = Path(__file__).parents[3] / "deploy" / "seldom.sh"
WAIT_SECONDS = 0.5


@pytest.fixture
def look(tmp_path: Path) -> Look:
    return Look(tmp_path)


class Look:
    """Runs the check on a service whose health is whether a file is there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.service = folder / "service"

    def __call__(self) -> tuple[int, bool]:
        """The exit status, and whether it waited."""
        began = time.monotonic()
        environment = {"TMPDIR": str(self._folder), "SELDOM_SECONDS": str(WAIT_SECONDS), "PATH": "/usr/bin:/bin"}
        ended = subprocess.run([SELDOM, "test", "-e", self.service], env=environment, check=False)
        return ended.returncode, time.monotonic() - began >= WAIT_SECONDS


def test_seldom_once_healthy(look: Look) -> None:
    """A service that does not serve yet is looked at at once; one that did is left alone for a while."""
    assert look()[0] == 1
    look.service.touch()
    assert look()[0] == 0
    assert look() == (0, True)


def test_often_when_ill(look: Look) -> None:
    """One that serves no more is told as soon as it is looked at, and from then on it is looked at at once."""
    look.service.touch()
    assert look()[0] == 0
    look.service.unlink()
    assert look() == (1, True)
    look.service.touch()
    assert look()[0] == 0
    assert look() == (0, True)
