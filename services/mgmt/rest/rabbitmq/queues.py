"""/api/queues and /api/consumers."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from services.common.access import questions
from services.common.access.action import Action
from services.mgmt.rabbitmq.columns import shown
from services.mgmt.rabbitmq.counted import Counted
from services.mgmt.rabbitmq.forms import QueueForm
from services.mgmt.rabbitmq.needs import to_declare_queue
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.rabbitmq.answers import PUT, Route, body_of, documented, put, read
from services.mgmt.rest.rabbitmq.caller import Caller, who_asks
from services.mgmt.rest.rabbitmq.connections import Connected
from services.mgmt.rest.rabbitmq.listing import Query_, listed
from services.mgmt.rest.rabbitmq.paths import API
from services.mgmt.tree.asked_about import properties_of
from services.mgmt.turns import in_steps

_ONE = "/{vhost:encoded}/{name:encoded}"


def queue_routes(doors: Doors, broker: Broker) -> APIRouter:
    """A user who may see a virtual host sees its queues."""
    router = APIRouter(prefix=f"{API}/queues", tags=["RabbitMQ: queues"], route_class=Route, responses=documented(404))
    asks: Caller = who_asks(doors)
    objects = broker.objects

    async def rows(caller: Caller, vhost: str | None, wanted: Query_) -> Response:
        await objects.known(counted=True)
        counted = Counted(broker)
        found = [row for host in caller.seen(objects, vhost) for row in await in_steps(objects.queues_in_place(host))]
        return await listed(found, wanted, counted.queue, counted.quick, by_place=False)

    @router.get("", summary="Queues")
    async def list_queues(wanted: Query_, caller: Caller = asks) -> Response:
        """In all virtual hosts that the user sees; counts are five seconds old at most."""
        return await rows(caller, None, wanted)

    @router.get("/{vhost:encoded}", summary="Queues of a virtual host")
    async def queues_in(vhost: str, wanted: Query_, caller: Caller = asks) -> Response:
        """Counts are five seconds old at most."""
        return await rows(caller, vhost, wanted)

    @router.get(_ONE, summary="A queue")
    async def get_queue(vhost: str, name: str, columns: str = "", caller: Caller = asks) -> JSONResponse:
        """With its consumers."""
        await objects.known(counted=True)
        caller.seen(objects, vhost)
        row = objects.queue(vhost, name)
        return JSONResponse(shown(Counted(broker).queue_and_consumers(row), columns))

    @router.get(_ONE + "/bindings", summary="Bindings of a queue")
    async def bindings_of(vhost: str, name: str, wanted: Query_, caller: Caller = asks) -> Response:
        """With that of the default exchange."""
        await objects.known()
        caller.seen(objects, vhost)
        return await listed(list(objects.bindings_to_queue(vhost, name)), wanted)

    return router


def queue_changes(doors: Doors, broker: Broker) -> APIRouter:
    """As over AMQP, by the user's permissions."""
    router = APIRouter(prefix=f"{API}/queues", tags=["RabbitMQ: queues"], route_class=Route, responses=documented(404))
    asks: Caller = who_asks(doors)
    objects = broker.objects

    @router.put(_ONE, summary="Declare a queue", openapi_extra=body_of(QueueForm), **PUT)
    async def put_queue(vhost: str, name: str, request: Request, caller: Caller = asks) -> Response:
        """One that is there is left as it is, or 400 where it is another."""
        await objects.known()
        caller.seen(objects, vhost)
        told = await read(request, QueueForm)
        caller.check(to_declare_queue(vhost, name, told))
        return put(created=await broker.changes.declare_queue(vhost, name, told))

    @router.delete(_ONE, summary="Delete a queue", status_code=204)
    async def delete_queue(vhost: str, name: str, request: Request, caller: Caller = asks) -> None:
        """With what is in it; `if-empty=true` and `if-unused=true` where that must not be."""
        await objects.known()
        caller.seen(objects, vhost)
        caller.check(questions.of_queue(Action.DELETE, vhost, name, properties_of(broker.house.mirror, vhost, name)))
        queue = objects.shared(vhost, name)
        asked = request.query_params
        unused, empty = asked.get("if-unused") == "true", asked.get("if-empty") == "true"
        await broker.changes.delete_queue(queue, if_unused=unused, if_empty=empty)

    @router.delete(_ONE + "/contents", summary="Purge a queue", status_code=204)
    async def purge_queue(vhost: str, name: str, caller: Caller = asks) -> None:
        """Of what waits; what consumers hold stays theirs."""
        await objects.known()
        caller.seen(objects, vhost)
        caller.check(questions.of_queue(Action.PURGE, vhost, name, properties_of(broker.house.mirror, vhost, name)))
        await broker.changes.purge_queue(objects.shared(vhost, name))

    return router


def consumer_routes(doors: Doors, broker: Broker) -> APIRouter:
    """Those whose connections a caller sees: all of them if it may observe, else its own."""
    router = APIRouter(
        prefix=f"{API}/consumers", tags=["RabbitMQ: queues"], route_class=Route, responses=documented(404)
    )
    asks: Caller = who_asks(doors)
    connected = Connected(broker)

    async def rows(caller: Caller, vhost: str | None, wanted: Query_) -> Response:
        await broker.objects.known(counted=True)
        counted, is_seen = Counted(broker), await connected.sees(caller)
        queues = (row for host in caller.seen(broker.objects, vhost) for row in broker.objects.queues(host))
        its = ((row, each) for row in queues for each in counted.consumers_of(row) if is_seen(each.connection))
        return await listed([counted.consumer(*each) for each in its], wanted)

    @router.get("", summary="Consumers")
    async def list_consumers(wanted: Query_, caller: Caller = asks) -> Response:
        """In all virtual hosts that the user sees."""
        return await rows(caller, None, wanted)

    @router.get("/{vhost:encoded}", summary="Consumers of a virtual host")
    async def consumers_in(vhost: str, wanted: Query_, caller: Caller = asks) -> Response:
        """Five seconds old at most."""
        return await rows(caller, vhost, wanted)

    return router
