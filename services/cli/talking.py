"""Calls of commands to the running stack: which service is called, and a line where it does not answer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from services.cli.asking import read_settings, run

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from services.common.clients.capture import CaptureClient
    from services.common.clients.mgmt import MgmtClient
    from services.common.clients.objects import ObjectsClient
    from services.common.clients.placement import PlacementClient
    from services.common.clients.ports import PortsClient
    from services.common.clients.tracing import TracingClient
    from services.common.clients.virtual_hosts import VirtualHostsClient
    from services.common.config import Settings

# ruff: noqa: PLC0415 - each command loads the client that it needs: it takes time

_Client = TypeVar("_Client")
_Result = TypeVar("_Result")


def on_mgmt(call: Callable[[MgmtClient], Coroutine[Any, Any, _Result]], doing: str = "") -> _Result:
    """What `call` gives; exits with a line where it fails, as `run` does. `doing` is beside a bar, if it takes long."""
    from services.common.clients.mgmt import MgmtClient

    return _talk("mgmt", lambda settings: MgmtClient(settings.address_of("mgmt")), call, doing)


def on_objects(call: Callable[[ObjectsClient], Coroutine[Any, Any, _Result]]) -> _Result:
    """As `on_mgmt`, for objects in virtual hosts."""
    from services.common.clients.objects import ObjectsClient

    return _talk("mgmt", lambda settings: ObjectsClient(settings.address_of("mgmt")), call)


def on_router(call: Callable[[VirtualHostsClient], Coroutine[Any, Any, _Result]], doing: str = "") -> _Result:
    """As `on_mgmt`."""
    from services.common.clients.virtual_hosts import VirtualHostsClient

    return _talk("router", lambda settings: VirtualHostsClient(settings.address_of("router")), call, doing)


def on_tracing(call: Callable[[TracingClient], Coroutine[Any, Any, _Result]]) -> _Result:
    """As `on_mgmt`, of the store."""
    from services.common.clients.tracing import TracingClient

    return _talk("store", lambda settings: TracingClient(settings.address_of("store")), call)


def on_capture(call: Callable[[CaptureClient], Coroutine[Any, Any, _Result]]) -> _Result:
    """As `on_mgmt`, of the store."""
    from services.common.clients.capture import CaptureClient

    return _talk("store", lambda settings: CaptureClient(settings.address_of("store")), call)


def on_ports(call: Callable[[PortsClient], Coroutine[Any, Any, _Result]]) -> _Result:
    """As `on_mgmt`, of the store."""
    from services.common.clients.ports import PortsClient

    return _talk("store", lambda settings: PortsClient(settings.address_of("store")), call)


def on_placement(call: Callable[[PlacementClient], Coroutine[Any, Any, _Result]], doing: str = "") -> _Result:
    """As `on_mgmt`, of the store and the router."""
    from services.common.clients.placement import PlacementClient

    def client(settings: Settings) -> PlacementClient:
        return PlacementClient(settings.address_of("store"), settings.address_of("router"))

    return _talk("store", client, call, doing)


def _talk(
    role: str,
    client_of: Callable[[Settings], AbstractAsyncContextManager[_Client]],
    call: Callable[[_Client], Coroutine[Any, Any, _Result]],
    doing: str = "",
) -> _Result:
    """`role` is the service that the error names where none answers."""
    settings = read_settings()

    async def talk() -> _Result:
        from services.cli.bar import bar
        from services.common.audit.acting import act_for_command_line

        act_for_command_line()
        async with client_of(settings) as client, bar(doing, wanted=bool(doing)):
            return await call(client)

    return run(talk(), settings.address_of(role))
