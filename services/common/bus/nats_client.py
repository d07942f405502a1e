"""NATS's client: connected, and closed, within a time, whatever it makes of being cancelled."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from nats.aio.client import Client
from nats.errors import Error

from services.common.runtime import end

_FAREWELL_SECONDS = 1.0


async def connect(client: Client, seconds: float, servers: str | list[str], **options: Any) -> None:  # noqa: ANN401 - as the client has them
    """Returns when `client` is connected; raises TimeoutError after so many seconds, and what it raises before.

    The client waits with `wait_for`, which in Python 3.11 loses a cancellation that comes with an answer, and tries one
    server after the other for as long as it is not cancelled: so it is cancelled until it has ended. What it says then
    counts, also that it is connected.
    """
    attempt = asyncio.get_running_loop().create_task(client.connect(servers, **options), name="NATS connects")
    attempt.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        await asyncio.wait({attempt}, timeout=seconds)
    finally:
        await end([attempt])
    if attempt.cancelled():
        raise TimeoutError
    attempt.result()


async def close(client: Client) -> None:
    """Ends the client in any state, within a second: its own `close` may wait for tasks of its own that are cancelled.

    A client that never connected fails an assertion in `close`.
    """
    with contextlib.suppress(Error, OSError, AssertionError):
        async with asyncio.timeout(_FAREWELL_SECONDS):
            await client.close()
