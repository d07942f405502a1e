"""/api/health/checks and /api/aliveness-test: what watches a broker asks these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from services.common.access import questions
from services.common.access.action import Action
from services.common.arguments.dead_letters import NONE
from services.common.errors import Unavailable
from services.mgmt.access.operations import ASK_MGMT, OBSERVE
from services.mgmt.by_hand.client import Login, channel
from services.mgmt.rabbitmq.forms import QueueForm
from services.mgmt.rabbitmq.messages import PropertiesForm
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.rabbitmq.answers import Route, documented
from services.mgmt.rest.rabbitmq.caller import Caller, who_asks
from services.mgmt.rest.rabbitmq.paths import API
from services.mgmt.rest.sites import NOT_FROM_PAGES, is_foreign
from services.mgmt.roll import OK
from services.mgmt.stack_health import Report, StackHealth

_QUEUE: Final = "aliveness-test"
_PAYLOAD: Final = b"test_message"


class _Failed(BaseModel):
    """The answer of a check that failed, or could not be made."""

    reason: str
    status: str | None = Field(None, description="`failed`, where the check was made")


def health_routes(doors: Doors, broker: Broker, health: StackHealth) -> APIRouter:
    """200 and `ok`, or 503 and `failed`, with why."""
    asks = who_asks(doors, OBSERVE)
    router = APIRouter(
        prefix=f"{API}/health/checks",
        tags=["RabbitMQ: health"],
        route_class=Route,
        responses={**documented(), 503: {"model": _Failed}},
        dependencies=[asks],
    )

    def check(path: str, summary: str, wrong: Callable[[Report], str]) -> None:
        async def checked() -> JSONResponse:
            """Half a second old at most."""
            return _told(wrong(await health.report()))

        router.add_api_route(path, checked, methods=["GET"], summary=summary, name=path)

    check("/alarms", "Whether the store can write", lambda report: _service(report, "store"))
    check("/local-alarms", "The same: there is one store", lambda report: _service(report, "store"))
    check(
        "/virtual-hosts",
        "Whether every partition of queues has an owner that serves it",
        lambda report: _service(report, "queue"),
    )

    @router.get("/port-listener/{port}", summary="Whether a gateway listens at a port")
    async def port_listener(port: int) -> JSONResponse:
        """At that port."""
        listeners = [at for each in await broker.house.ports.ports() for where in each.gateways for at in where.at]
        ports = sorted({int(at.rpartition(":")[2]) for at in listeners})
        if port in ports:
            return _told("", {"port": port})
        return _told("No active listener", {"missing": port, "ports": ports})

    return router


def aliveness_routes(doors: Doors, broker: Broker) -> APIRouter:
    """Publishes a message to a queue and gets it, as the caller."""
    router = APIRouter(prefix=API, tags=["RabbitMQ: health"], route_class=Route, responses=documented(403, 404))
    asks: Caller = who_asks(doors)
    door = doors.to(ASK_MGMT)

    @router.get("/aliveness-test/{vhost:encoded}", summary="Whether a message gets through")
    async def aliveness(vhost: str, request: Request, caller: Caller = asks) -> dict[str, str]:
        """By the queue aliveness-test, which is declared, and stays: no page of another site has that done."""
        if is_foreign(dict(request.headers.raw)):
            raise HTTPException(403, NOT_FROM_PAGES)
        await broker.objects.known()
        caller.seen(broker.objects, vhost)
        its = questions.queue(durable=False, exclusive=False, auto_delete=False)
        caller.check(
            questions.create_queue(vhost, _QUEUE, NONE, its),
            questions.publish(vhost, "", _QUEUE),
            questions.of_queue(Action.CONSUME, vhost, _QUEUE, its),
        )
        await broker.changes.declare_queue(vhost, _QUEUE, QueueForm(durable=False))
        claim = door.read(request)
        login = Login(claim.user or caller.asker.name, claim.secret, caller.asker.host)
        async with channel(broker.house.settings, login, vhost) as opened:
            await opened.publish("", _QUEUE, PropertiesForm().made(), _PAYLOAD)
            got = await opened.get(_QUEUE)
            if got is None:
                raise Unavailable(f"no message comes out of queue '{_QUEUE}'")
            await opened.accept(got.method.delivery_tag)
        return {"status": "ok"}

    return router


def _service(report: Report, name: str) -> str:
    state = report.services.get(name, "")
    return "" if state == OK else f"{name}: {state}"


def _told(wrong: str, more: dict[str, Any] | None = None) -> JSONResponse:
    if wrong:
        return JSONResponse({"status": "failed", "reason": wrong, **(more or {})}, 503)
    return JSONResponse({"status": "ok", **(more or {})})
