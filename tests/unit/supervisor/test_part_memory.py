"""What `hopline up` tells its processes of the memory that they share."""

from __future__ import annotations

import os

import pytest

from services.common.config import Settings
from services.common.memory import count_with
from services.supervisor.up import _part_memory

_MIB = 1 << 20


@pytest.mark.parametrize(("queue_memory", "expected"), [(0, int(0.4 * 616 * _MIB / 2)), (5 * _MIB, 5 * _MIB)])
def test_all_of_them_count_with_what_is_left(queue_memory: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their own needs are taken off once; queue processes part two fifths of the rest, or have what is said."""
    for name in ("HOPLINE_MEMORY", "HOPLINE_QUEUE_MEMORY"):
        monkeypatch.setenv(name, "")  # what is said below ends with this test
    try:
        _part_memory(Settings(memory=1000 * _MIB, queue_memory=queue_memory), processes=8)
    finally:
        count_with(0)
    assert (os.environ["HOPLINE_MEMORY"], os.environ["HOPLINE_QUEUE_MEMORY"]) == (str(616 * _MIB), str(expected))
