"""/api/bindings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, unquote

from fastapi import APIRouter, Request, Response

from services.common.access.action import Action, Kind
from services.common.access.asked import Asked
from services.common.errors import NotFound
from services.mgmt.rabbitmq.changes import BindingEnds
from services.mgmt.rabbitmq.forms import BindingForm
from services.mgmt.rabbitmq.needs import to_bind
from services.mgmt.rabbitmq.objects import Row
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.rabbitmq.answers import Route, body_of, documented, read
from services.mgmt.rest.rabbitmq.caller import Caller, who_asks
from services.mgmt.rest.rabbitmq.listing import Query_, listed
from services.mgmt.rest.rabbitmq.paths import API
from services.mgmt.tree.asked_about import properties_of

_KINDS: Final = {"q": Kind.QUEUE, "e": Kind.EXCHANGE}
_KEYED: Final = "/{props:encoded}"


def binding_routes(doors: Doors, broker: Broker) -> Iterator[APIRouter]:
    """A user who may see a virtual host sees its bindings."""
    router = _router()
    asks: Caller = who_asks(doors)
    objects = broker.objects

    async def rows(caller: Caller, vhost: str | None, wanted: Query_) -> Response:
        await objects.known()
        return await listed([row for host in caller.seen(objects, vhost) for row in objects.bindings(host)], wanted)

    @router.get("", summary="Bindings")
    async def list_bindings(wanted: Query_, caller: Caller = asks) -> Response:
        """In all virtual hosts that the user sees."""
        return await rows(caller, None, wanted)

    @router.get("/{vhost:encoded}", summary="Bindings of a virtual host")
    async def bindings_in(vhost: str, wanted: Query_, caller: Caller = asks) -> Response:
        """With those of the default exchange."""
        return await rows(caller, vhost, wanted)

    yield router
    for char in _KINDS:
        between = _Between(broker, char)
        yield _reads(doors, between)
        yield _writes(doors, between)


class _Between:
    """Bindings of an exchange, and a queue (q) or an exchange (e)."""

    def __init__(self, broker: Broker, char: str) -> None:
        self.path = f"/{{vhost:encoded}}/e/{{source:encoded}}/{char}/{{destination:encoded}}"
        self.what = _KINDS[char].value.lower()
        self.changes = broker.changes
        self._kind = _KINDS[char]
        self._objects = broker.objects
        self._house = broker.house

    def place(self, source: str, destination: str) -> BindingEnds:
        """Where such a binding is."""
        return BindingEnds(source, destination, to_exchange=self._kind is Kind.EXCHANGE)

    async def found(self, caller: Caller, vhost: str, place: BindingEnds) -> list[Row]:
        """All there. Raises AccessRefused, NotFound of the virtual host."""
        await self._objects.known()
        caller.seen(self._objects, vhost)
        return self._objects.bindings_between(vhost, place.source, place.destination, to_exchange=place.to_exchange)

    def asked(self, action: Action, vhost: str, place: BindingEnds, key: str) -> Asked:
        """Of a caller that binds, or unbinds."""
        its = () if place.to_exchange else properties_of(self._house.mirror, vhost, place.destination)
        return to_bind(action, vhost, place, key, its)


def _reads(doors: Doors, between: _Between) -> APIRouter:
    router = _router()
    asks: Caller = who_asks(doors)

    @router.get(between.path, summary=f"Bindings of an exchange and {between.what}")
    async def list_between(vhost: str, source: str, destination: str, caller: Caller = asks) -> list[Row]:
        """All between the two."""
        return await between.found(caller, vhost, between.place(source, destination))

    @router.get(between.path + _KEYED, summary="A binding")
    async def get_one(vhost: str, source: str, destination: str, props: str, caller: Caller = asks) -> Row:
        """By its `properties_key`."""
        return _keyed(await between.found(caller, vhost, between.place(source, destination)), props)

    return router


def _writes(doors: Doors, between: _Between) -> APIRouter:
    router = _router()
    asks: Caller = who_asks(doors)

    @router.post(
        between.path,
        summary=f"Bind a {between.what}",
        status_code=201,
        response_class=Response,
        openapi_extra=body_of(BindingForm),
    )
    async def bind(vhost: str, source: str, destination: str, request: Request, caller: Caller = asks) -> Response:
        """As over AMQP, by the user's permissions; where it is, Location says."""
        place = between.place(source, destination)
        await between.found(caller, vhost, place)
        told = await read(request, BindingForm)
        caller.check(between.asked(Action.BIND, vhost, place, told.routing_key))
        key = await between.changes.bind(vhost, place, told)
        return Response(status_code=201, headers={"Location": f"{quote(destination, safe='')}/{quote(key, safe='')}"})

    @router.delete(between.path + _KEYED, summary="Unbind", status_code=204)
    async def unbind(vhost: str, source: str, destination: str, props: str, caller: Caller = asks) -> None:
        """By its `properties_key`."""
        place = between.place(source, destination)
        row = _keyed(await between.found(caller, vhost, place), props)
        caller.check(between.asked(Action.UNBIND, vhost, place, row["routing_key"]))
        await between.changes.unbind(vhost, place, row["properties_key"])

    return router


def _keyed(rows: list[Row], key: str) -> Row:
    """As it is told, and as it is read where it has come into a path without being encoded once more."""
    keys = {unquote(row["properties_key"]): row for row in rows} | {row["properties_key"]: row for row in rows}
    if key not in keys:
        raise NotFound(f"no binding '{key}'")
    found: Row = keys[key]
    return found


def _router() -> APIRouter:
    return APIRouter(
        prefix=f"{API}/bindings", tags=["RabbitMQ: bindings"], route_class=Route, responses=documented(404)
    )
