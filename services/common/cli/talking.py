"""Calls of commands to the running stack: with whom, and a line where nobody answers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from services.common.cli.asking import read_settings, run

if TYPE_CHECKING:
    from services.common.clients.mgmt import MgmtClient
    from services.common.clients.placement import PlacementClient
    from services.common.clients.tracing import TracingClient
    from services.common.clients.virtual_hosts import VirtualHostsClient

# ruff: noqa: PLC0415 - each command loads the client that it needs: it takes time

_Result = TypeVar("_Result")


def on_mgmt(call: Callable[[MgmtClient], Coroutine[Any, Any, _Result]]) -> _Result:
    """What `call` gives; exits with a line where it fails, as `run` does."""
    from services.common.clients.mgmt import MgmtClient

    address = read_settings().address_of("mgmt")

    async def talk() -> _Result:
        async with MgmtClient(address) as client:
            return await call(client)

    return run(talk(), address)


def on_router(call: Callable[[VirtualHostsClient], Coroutine[Any, Any, _Result]]) -> _Result:
    """As `on_mgmt`."""
    from services.common.clients.virtual_hosts import VirtualHostsClient

    address = read_settings().address_of("router")

    async def talk() -> _Result:
        async with VirtualHostsClient(address) as client:
            return await call(client)

    return run(talk(), address)


def on_tracing(call: Callable[[TracingClient], Coroutine[Any, Any, _Result]]) -> _Result:
    """As `on_mgmt`; the store has what is asked."""
    from services.common.clients.tracing import TracingClient

    address = read_settings().address_of("store")

    async def talk() -> _Result:
        async with TracingClient(address) as client:
            return await call(client)

    return run(talk(), address)


def on_placement(call: Callable[[PlacementClient], Coroutine[Any, Any, _Result]]) -> _Result:
    """As `on_mgmt`; store and router have what is asked."""
    from services.common.clients.placement import PlacementClient

    settings = read_settings()

    async def talk() -> _Result:
        async with PlacementClient(settings.address_of("store"), settings.address_of("router")) as client:
            return await call(client)

    return run(talk(), settings.address_of("store"))
