"""Two routers: the one that writes is killed, and clients hardly notice."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest

from services.common.clients.routers import ROLE
from services.common.clients.store import StoreClient
from tests.support.interop_pika import connected
from tests.support.stack import Stack, running_stack, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUTERS = ("router", "router-2")
_MEANWHILE = 50  # publishes


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack with two routers."""
    data = tmp_path_factory.mktemp("routers") / "data"
    with running_stack(data, {"HOPLINE_ROUTERS": "2"}) as started:
        yield started


def _writer(stack: Stack) -> str:
    """Which of the two writes."""

    async def ask() -> str:
        store = StoreClient(f"unix:{stack.data}/run/store.sock")
        try:
            leases = (await store.leases(ROLE)).leases
        finally:
            await store.close()
        return leases[0].address if leases else ""

    address = asyncio.run(ask())
    return next((name for name in ROUTERS if address.endswith(f"/{name}.sock")), "")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_another_router_takes_over(stack: Stack, name: str, number: signal.Signals) -> None:
    """The writing router is killed, or stopped: publishes on known routes go on, a declare waits for the next."""
    with connected(stack.address) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(name)
        channel.basic_publish("", name, b"x", mandatory=True)
        writer = _writer(stack)
        pid = stack.pid(writer)
        os.kill(pid, number)
        for _ in range(_MEANWHILE):
            channel.basic_publish("", name, b"x", mandatory=True)
        channel.queue_declare(f"{name}-later")
        if number == signal.SIGSTOP:
            # One that was killed is started again, and may be the next itself.
            assert _writer(stack) not in {"", writer}
        if number == signal.SIGSTOP:
            os.kill(pid, signal.SIGCONT)
        wait_until(lambda: stack.pid(writer) != pid, 30, "a router that starts again")
        channel.basic_publish("", f"{name}-later", b"x", mandatory=True)
        assert channel.queue_delete(name).method.message_count == 1 + _MEANWHILE
        assert channel.queue_delete(f"{name}-later").method.message_count == 1
    stack.wait_until_healthy()
