"""/api/policies and /api/operator-policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from services.common.access import questions
from services.common.access.asked import Asked
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.rabbitmq.forms import PolicyForm
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.rabbitmq.answers import PUT, Route, body_of, documented, put, read
from services.mgmt.rest.rabbitmq.caller import Caller, who_asks
from services.mgmt.rest.rabbitmq.listing import Query_, listed
from services.mgmt.rest.rabbitmq.paths import API

_ONE = "/{vhost:encoded}/{name:encoded}"


def policy_routes(doors: Doors, broker: Broker) -> Iterator[APIRouter]:
    """Users with the tag policymaker set policies of virtual hosts that they may open; administrators set all."""
    yield _routes(doors, broker, questions.set_policies, operator=False)
    yield _routes(doors, broker, lambda _: CONFIGURE, operator=True)


def _routes(doors: Doors, broker: Broker, to_set: Callable[[str], Asked], *, operator: bool) -> APIRouter:
    what = "operator policies" if operator else "policies"
    prefix = f"{API}/{what.replace(' ', '-')}"
    router = APIRouter(prefix=prefix, tags=["RabbitMQ: policies"], route_class=Route, responses=documented(404))
    _reads(router, doors, broker, what, operator=operator)
    _changes(router, doors, broker, to_set, operator=operator)
    return router


def _reads(router: APIRouter, doors: Doors, broker: Broker, what: str, *, operator: bool) -> None:
    asks: Caller = who_asks(doors)
    objects = broker.objects

    async def rows(caller: Caller, vhost: str | None, wanted: Query_) -> Response:
        await objects.known()
        of = partial(objects.governed.rows, operator=operator)
        return await listed([row for host in caller.seen(objects, vhost) for row in of(host)], wanted)

    @router.get("", summary=what.capitalize())
    async def list_policies(wanted: Query_, caller: Caller = asks) -> Response:
        """In all virtual hosts that the user sees."""
        return await rows(caller, None, wanted)

    @router.get("/{vhost:encoded}", summary=f"{what.capitalize()} of a virtual host")
    async def policies_in(vhost: str, wanted: Query_, caller: Caller = asks) -> Response:
        """By name."""
        return await rows(caller, vhost, wanted)

    @router.get(_ONE, summary=f"One of the {what}")
    async def get_policy(vhost: str, name: str, caller: Caller = asks) -> JSONResponse:
        """With its pattern and definition."""
        await objects.known()
        caller.seen(objects, vhost)
        return JSONResponse(objects.governed.row(vhost, name, operator=operator))


def _changes(
    router: APIRouter, doors: Doors, broker: Broker, to_set: Callable[[str], Asked], *, operator: bool
) -> None:
    asks: Caller = who_asks(doors)
    objects, kind = broker.objects, "an operator policy" if operator else "a policy"

    @router.put(_ONE, summary=f"Set {kind}", openapi_extra=body_of(PolicyForm), **PUT)
    async def put_policy(vhost: str, name: str, request: Request, caller: Caller = asks) -> Response:
        """Queues heed it when this is answered."""
        await objects.known()
        caller.check(to_set(vhost))
        caller.seen(objects, vhost)
        told = await read(request, PolicyForm)
        return put(created=await broker.changes.set_policy(vhost, name, told, operator=operator))

    @router.delete(_ONE, summary=f"Clear {kind}", status_code=204)
    async def delete_policy(vhost: str, name: str, caller: Caller = asks) -> None:
        """Queues are as they would be without it when this is answered."""
        await objects.known()
        caller.check(to_set(vhost))
        caller.seen(objects, vhost)
        await broker.changes.clear_policy(vhost, name, operator=operator)
