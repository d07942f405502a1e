"""/api/exchanges."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from services.common.access import questions
from services.mgmt.rabbitmq.columns import shown
from services.mgmt.rabbitmq.forms import ExchangeForm
from services.mgmt.rabbitmq.needs import to_declare_exchange
from services.mgmt.rabbitmq.objects import Row
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.rabbitmq.answers import PUT, Route, body_of, documented, put, read
from services.mgmt.rest.rabbitmq.caller import Caller, who_asks
from services.mgmt.rest.rabbitmq.listing import Query_, listed
from services.mgmt.rest.rabbitmq.paths import API

_ONE = "/{vhost:encoded}/{name:encoded}"


def exchange_routes(doors: Doors, broker: Broker) -> APIRouter:
    """A user who may see a virtual host sees its exchanges."""
    router = APIRouter(
        prefix=f"{API}/exchanges", tags=["RabbitMQ: exchanges"], route_class=Route, responses=documented(404)
    )
    asks: Caller = who_asks(doors)
    objects = broker.objects

    async def rows(caller: Caller, vhost: str | None, wanted: Query_) -> Response:
        await objects.known()
        return await listed(
            [row for host in caller.seen(objects, vhost) for row in objects.exchanges(host)], wanted, _told
        )

    @router.get("", summary="Exchanges")
    async def list_exchanges(wanted: Query_, caller: Caller = asks) -> Response:
        """In all virtual hosts that the user sees."""
        return await rows(caller, None, wanted)

    @router.get("/{vhost:encoded}", summary="Exchanges of a virtual host")
    async def exchanges_in(vhost: str, wanted: Query_, caller: Caller = asks) -> Response:
        """With those that each has."""
        return await rows(caller, vhost, wanted)

    @router.get(_ONE, summary="An exchange")
    async def get_exchange(vhost: str, name: str, columns: str = "", caller: Caller = asks) -> JSONResponse:
        """The one without a name is amq.default."""
        await objects.known()
        caller.seen(objects, vhost)
        return JSONResponse(shown(_told(objects.exchange(vhost, name)), columns))

    return router


def bound_routes(doors: Doors, broker: Broker) -> APIRouter:
    """Bindings of one."""
    router = APIRouter(
        prefix=f"{API}/exchanges", tags=["RabbitMQ: exchanges"], route_class=Route, responses=documented(404)
    )
    asks: Caller = who_asks(doors)

    @router.get(_ONE + "/bindings/source", summary="Bindings from an exchange")
    async def leading_on(vhost: str, name: str, wanted: Query_, caller: Caller = asks) -> Response:
        """Of which it is the source."""
        return await _bound(broker, caller, vhost, name, "source", wanted)

    @router.get(_ONE + "/bindings/destination", summary="Bindings to an exchange")
    async def leading_here(vhost: str, name: str, wanted: Query_, caller: Caller = asks) -> Response:
        """Of which it is the destination."""
        return await _bound(broker, caller, vhost, name, "destination", wanted)

    return router


def exchange_changes(doors: Doors, broker: Broker) -> APIRouter:
    """As over AMQP, by the user's permissions."""
    router = APIRouter(
        prefix=f"{API}/exchanges", tags=["RabbitMQ: exchanges"], route_class=Route, responses=documented(404)
    )
    asks: Caller = who_asks(doors)
    objects = broker.objects

    @router.put(_ONE, summary="Declare an exchange", openapi_extra=body_of(ExchangeForm), **PUT)
    async def put_exchange(vhost: str, name: str, request: Request, caller: Caller = asks) -> Response:
        """One that is there is left as it is, or 400 where it is another."""
        await objects.known()
        caller.seen(objects, vhost)
        told = await read(request, ExchangeForm)
        caller.check(to_declare_exchange(vhost, name, told))
        return put(created=await broker.changes.declare_exchange(vhost, name, told))

    @router.delete(_ONE, summary="Delete an exchange", status_code=204)
    async def delete_exchange(vhost: str, name: str, request: Request, caller: Caller = asks) -> None:
        """With its bindings; `if-unused=true` where there must be none."""
        await objects.known()
        caller.seen(objects, vhost)
        caller.check(questions.delete_exchange(vhost, name))
        objects.exchange(vhost, name)
        await broker.changes.delete_exchange(vhost, name, if_unused=request.query_params.get("if-unused") == "true")

    return router


async def _bound(broker: Broker, caller: Caller, vhost: str, name: str, end: str, wanted: Query_) -> Response:
    objects = broker.objects
    await objects.known()
    caller.seen(objects, vhost)
    exchange = objects.exchange(vhost, name)["name"]
    ends = {"source": objects.bindings_from, "destination": objects.bindings_to_exchange}
    return await listed(list(ends[end](vhost, exchange)), wanted)


def _told(row: Row) -> Row:
    return {**row, "policy": None, "user_who_performed_action": ""}
