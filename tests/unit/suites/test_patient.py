from __future__ import annotations

import runpy
import sys
from types import SimpleNamespace

import pytest

from suites.sources import REPLACED


def test_tests_of_aio_pika_get_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decorator that they find in aiomisc once the plug-in is loaded allows four times the seconds they ask for."""
    aiomisc = SimpleNamespace(timeout=lambda seconds: f"{seconds} seconds")
    monkeypatch.setitem(sys.modules, "aiomisc", aiomisc)
    runpy.run_path(str(REPLACED / "patient.py"))
    assert aiomisc.timeout(30) == "120 seconds"
