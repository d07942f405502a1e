"""Ctrl-C ends a command, whatever a library makes of it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from services.common.cli.asking import run


async def _deaf() -> None:
    """Takes the first cancellation for its own, as NATS's client may."""
    asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGINT)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        await asyncio.sleep(60)


async def _fails() -> None:
    asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGINT)
    try:
        await asyncio.sleep(60)
    finally:
        raise OSError("while it ended")


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """As in a process of its own: tests of services leave another handler behind."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before or signal.default_int_handler)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("work", [_deaf, _fails])
def test_interrupted(work: object) -> None:
    """Also one that takes a cancellation for one of its own, or fails while it ends."""
    with pytest.raises(KeyboardInterrupt):
        run(work())  # type: ignore[operator]
