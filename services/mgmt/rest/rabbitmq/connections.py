"""/api/connections and /api/channels."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from services.common.errors import NotFound
from services.mgmt.access.operations import CONFIGURE, OBSERVE
from services.mgmt.rabbitmq.columns import shown
from services.mgmt.rabbitmq.connected import channels, connection, connections
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.rabbitmq.answers import Route, documented
from services.mgmt.rest.rabbitmq.caller import Caller, who_asks
from services.mgmt.rest.rabbitmq.listing import Query_, listed
from services.mgmt.rest.rabbitmq.paths import API
from services.rpc.gateway_pb2 import Connection

_REASON = "Closed via management"


class Connected:
    """Connections that a caller sees: all of them if it may observe, else its own."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def of(self, caller: Caller, virtual_host: str | None = None) -> list[Connection]:
        """Raises AccessRefused, NotFound of the virtual host."""
        await self._broker.objects.known()
        if virtual_host is not None:
            caller.seen(self._broker.objects, virtual_host)
        found = await self._broker.house.gateways.connections()
        everybody = caller.may(OBSERVE)
        return [
            each
            for each in found
            if (everybody or each.user == caller.asker.name) and virtual_host in (None, each.virtual_host)
        ]

    async def sees(self, caller: Caller) -> Callable[[str], bool]:
        """Whether a connection of that name is one of those."""
        if caller.may(OBSERVE):
            return lambda _name: True
        return frozenset(each.name for each in await self.of(caller)).__contains__

    async def one(self, caller: Caller, name: str) -> Connection:
        """Raises NotFound."""
        found = next((each for each in await self.of(caller) if each.name == name), None)
        if found is None:
            raise NotFound(f"no connection '{name}'")
        return found


def connection_routes(doors: Doors, broker: Broker) -> APIRouter:
    """Names are Hopline's own: they are in its log and on record."""
    router = APIRouter(prefix=API, tags=["RabbitMQ: connections"], route_class=Route, responses=documented(404))
    asks: Caller = who_asks(doors)
    connected = Connected(broker)

    @router.get("/connections", summary="Connections")
    async def list_connections(wanted: Query_, caller: Caller = asks) -> Response:
        """Of all gateways that answer."""
        return await listed(connections(await connected.of(caller)), wanted, by_place=False)

    @router.get("/vhosts/{vhost:encoded}/connections", summary="Connections to a virtual host")
    async def connections_to(vhost: str, wanted: Query_, caller: Caller = asks) -> Response:
        """Of all gateways that answer."""
        return await listed(connections(await connected.of(caller, vhost)), wanted, by_place=False)

    @router.get("/connections/{name:encoded}", summary="A connection")
    async def get_connection(name: str, columns: str = "", caller: Caller = asks) -> JSONResponse:
        """By its name."""
        return JSONResponse(shown(connection(await connected.one(caller, name)), columns))

    @router.get("/connections/{name:encoded}/channels", summary="Channels of a connection")
    async def channels_of(name: str, wanted: Query_, caller: Caller = asks) -> Response:
        """AMQP 1.0 calls them sessions."""
        return await listed(channels([await connected.one(caller, name)]), wanted, by_place=False)

    @router.delete("/connections/{name:encoded}", summary="Close a connection", status_code=204)
    async def close_connection(name: str, request: Request, caller: Caller = asks) -> None:
        """One's own, or as administrator; the header X-Reason is told the client."""
        found = await connected.one(caller, name)
        if found.user != caller.asker.name:
            caller.check(CONFIGURE)
        reason = request.headers.get("X-Reason", _REASON)
        await broker.house.gateways.close(name, reason)

    return router


def channel_routes(doors: Doors, broker: Broker) -> APIRouter:
    """Of the connections that the user sees."""
    router = APIRouter(prefix=API, tags=["RabbitMQ: connections"], route_class=Route, responses=documented(404))
    asks: Caller = who_asks(doors)
    connected = Connected(broker)

    @router.get("/channels", summary="Channels")
    async def list_channels(wanted: Query_, caller: Caller = asks) -> Response:
        """Of all connections."""
        return await listed(channels(await connected.of(caller)), wanted, by_place=False)

    @router.get("/vhosts/{vhost:encoded}/channels", summary="Channels in a virtual host")
    async def channels_in(vhost: str, wanted: Query_, caller: Caller = asks) -> Response:
        """Of all connections to it."""
        return await listed(channels(await connected.of(caller, vhost)), wanted, by_place=False)

    @router.get("/channels/{name:encoded}", summary="A channel")
    async def get_channel(name: str, columns: str = "", caller: Caller = asks) -> JSONResponse:
        """By its name."""
        found = next((row for row in channels(await connected.of(caller)) if row["name"] == name), None)
        if found is None:
            raise NotFound(f"no channel '{name}'")
        return JSONResponse(shown(found, columns))

    return router
