"""Work on thousands of things, in turns of the event loop: other requests have theirs in between."""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

from services.common.clock import monotonic
from services.mgmt.model.steps import Steps

_T = TypeVar("_T")

TURN: Final = 0.005
"""Seconds that others wait."""


def at_once(steps: Steps[_T]) -> _T:
    """For those who cannot wait for others."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: _T = done.value
            return found


async def in_steps(steps: Steps[_T]) -> _T:
    """The same in turns."""
    ends = monotonic() + TURN
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: _T = done.value
            return found
        if monotonic() >= ends:
            await asyncio.sleep(0)
            ends = monotonic() + TURN
