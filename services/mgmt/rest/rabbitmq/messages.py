"""Publish and get by hand: as a client over AMQP, signed in as the caller."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response

from services.common.access import questions
from services.common.access.action import Action
from services.common.errors import NotFound, PreconditionFailed
from services.mgmt.access.operations import ASK_MGMT
from services.mgmt.by_hand.client import Login
from services.mgmt.rabbitmq import messages as by_hand
from services.mgmt.rabbitmq.messages import GetForm, PublishForm
from services.mgmt.rabbitmq.objects import DEFAULT
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.bodies import MOST
from services.mgmt.rest.rabbitmq.answers import Route, body_of, documented, read
from services.mgmt.rest.rabbitmq.caller import Caller, who_asks
from services.mgmt.rest.rabbitmq.paths import API
from services.mgmt.tree.asked_about import properties_of

_LARGEST: Final = 2
"""A body in JSON is longer than its message: base64 by a third, text by what is escaped."""
_ONE = "/{vhost:encoded}/{name:encoded}"


def message_routes(doors: Doors, broker: Broker) -> APIRouter:
    """The gateway asks what the user may, by mgmt's address; here it is asked by the user's own before."""
    router = APIRouter(prefix=API, tags=["RabbitMQ: messages"], route_class=Route, responses=documented(404))
    asks: Caller = who_asks(doors)
    publishes: Caller = who_asks(doors, ASK_MGMT, lambda: _LARGEST * broker.house.settings.max_message_size + MOST)
    door = doors.to(ASK_MGMT)

    def login(request: Request, caller: Caller) -> Login:
        return Login.of(door.read(request), caller.asker.name, caller.asker.host)

    @router.post(f"/exchanges{_ONE}/publish", summary="Publish", openapi_extra=body_of(PublishForm))
    async def publish(vhost: str, name: str, request: Request, caller: Caller = publishes) -> dict[str, bool]:
        """One message; whether any queue has it."""
        await broker.objects.known()
        caller.seen(broker.objects, vhost)
        exchange = "" if name == DEFAULT else name
        told = await read(request, PublishForm)
        caller.check(*(questions.publish(vhost, exchange, key) for key in told.all_keys()))
        claimed = login(request, caller)
        try:
            return {"routed": await by_hand.publish(broker.house.settings, claimed, vhost, exchange, told)}
        except NotFound as error:  # as of any other message that cannot be published
            raise PreconditionFailed(error.text) from None

    @router.post(f"/queues{_ONE}/get", summary="Get messages", openapi_extra=body_of(GetForm))
    async def get_messages(vhost: str, name: str, request: Request, caller: Caller = asks) -> Response:
        """Those that come first; `ackmode` says whether they go back, or are gone."""
        await broker.objects.known()
        caller.seen(broker.objects, vhost)
        told = await read(request, GetForm)
        caller.check(questions.of_queue(Action.CONSUME, vhost, name, properties_of(broker.house.mirror, vhost, name)))
        broker.objects.queue(vhost, name)
        found = by_hand.get(broker.house.settings, login(request, caller), vhost, name, told, request.is_disconnected)
        rows = [row async for row in found]
        return Response(b"[%b]" % b",".join(rows), media_type="application/json")

    return router
