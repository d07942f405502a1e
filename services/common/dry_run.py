"""Where a message would go, and by which bindings: what `hopline route` and GET /api/route answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from services.common.errors import SyntaxFault
from services.common.message import arguments
from services.rpc import router_pb2

_VIA: dict[int, Literal["binding", "implied", "alternate"]] = {
    router_pb2.BINDING: "binding",
    router_pb2.IMPLIED: "implied",
    router_pb2.ALTERNATE: "alternate",
}


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True)


class Hop(_Told):
    """From an exchange to a queue, or to another exchange."""

    to: str
    to_exchange: bool
    via: Literal["binding", "implied", "alternate"] = Field(
        description="a binding; the one that every queue has with the default exchange; the alternate exchange"
    )
    routing_key: str = Field(description="of the binding")
    arguments: dict[str, Any] = Field(description="of the binding, as services/common/message/arguments.py wraps them")


class Visit(_Told):
    """An exchange that the message comes to."""

    exchange: str
    type: str | None = Field(description="none where an alternate exchange does not exist")
    internal: bool = Field(description="clients may not publish to it")
    hops: list[Hop] = Field(description="by which it goes on; none where nothing matches")


class DryRun(_Told):
    """Nothing was sent."""

    virtual_host: str
    exchange: str
    routing_key: str
    headers: dict[str, Any] = Field(
        description="as JSON; what JSON does not have is wrapped, as in a binding's arguments"
    )
    visits: list[Visit] = Field(description="in the order in which the message comes to the exchanges, each once")
    queues: list[str] = Field(description="each gets one copy; none: the message is dropped, or returned if mandatory")


def parse_headers(given: Iterable[str]) -> dict[str, Any]:
    """Headers from `name=text` and `name:=JSON`; raises SyntaxFault.

    An exchange tells a number from the text of its digits, so both can be written.
    """
    return dict(_header(one) for one in given)


def told(request: router_pb2.ExplainRequest, headers: dict[str, Any], reply: router_pb2.ExplainReply) -> DryRun:
    """The DryRun from the router's answer to a request."""
    return DryRun(
        virtual_host=request.virtual_host,
        exchange=request.exchange,
        routing_key=request.routing_key,
        headers=json.loads(arguments.dump(headers) or b"{}"),
        visits=[_visit(visit) for visit in reply.visits],
        queues=[queue.name for queue in reply.queues],
    )


def _header(given: str) -> tuple[str, Any]:
    name, equals, value = given.partition("=")
    if not equals or not name.removesuffix(":"):
        raise SyntaxFault(f"'{given}' is not understood: name=text, or name:=JSON for a number, a boolean or null")
    if not name.endswith(":"):
        return name, value
    try:
        return name[:-1], arguments.load(f'{{"value": {value}}}'.encode())["value"]
    except (SyntaxFault, KeyError):
        raise SyntaxFault(f"'{given}': the value cannot be read as JSON; name=text is for text") from None


def _visit(visit: router_pb2.Visit) -> Visit:
    exists = visit.HasField("exchange")
    return Visit(
        exchange=visit.name,
        type=visit.exchange.type if exists else None,
        internal=visit.exchange.internal,
        hops=[_hop(hop) for hop in visit.hops],
    )


def _hop(hop: router_pb2.Hop) -> Hop:
    return Hop(
        to=hop.bind.destination,
        to_exchange=hop.bind.to_exchange,
        via=_VIA[hop.via],
        routing_key=hop.bind.routing_key,
        arguments=json.loads(hop.bind.arguments or b"{}"),
    )
