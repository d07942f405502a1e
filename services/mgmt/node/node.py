"""One request to a management node, carried out where its user may, and its reply."""

from __future__ import annotations

from services.common.authentication.principal import Principal
from services.common.errors import BrokerError, NotFound, SyntaxFault
from services.mgmt.access.guard import Guard
from services.mgmt.access.operations import ASK_MGMT
from services.mgmt.node.exchanged import Asked, Reply
from services.mgmt.node.itself import Itself
from services.mgmt.node.kinds import MANAGEMENT, SPACE, types_of
from services.mgmt.node.objects import Objects
from services.mgmt.tree.caller import Caller
from services.mgmt.tree.tree import Tree
from services.rpc import mgmt_pb2 as pb

_SELF = "self"


class Node:
    """Of all virtual hosts."""

    def __init__(self, tree: Tree, guard: Guard) -> None:
        self._tree = tree
        self._guard = guard

    async def manage(self, request: pb.ManageRequest) -> pb.ManageReply:
        """What went wrong is a reply as well: `Reply.refusal`."""
        who = request.who
        principal = Principal(who.name, who.provider, frozenset(who.groups), frozenset(who.tags))
        caller = Caller(self._guard, principal, who.host, publishes=request.publishes and request.virtual_host != SPACE)
        try:
            reply = await self._answer(caller, Asked.from_json(request.virtual_host, request.request))
        except BrokerError as error:
            reply = Reply.refusal(error)
        told = pb.ManageReply(status=reply.status, description=reply.description, body=reply.body)
        if to := reply.publish:
            told.publish.CopyFrom(
                pb.ByHand(
                    exchange=to.exchange, routing_key=to.key, format=to.format, properties=to.properties, body=to.body
                )
            )
        return told

    async def _answer(self, caller: Caller, asked: Asked) -> Reply:
        await caller.check([ASK_MGMT])
        if not (operation := asked.text("operation")):
            raise SyntaxFault("the property 'operation' says what is to be done")
        name, identity = asked.text("type"), asked.properties.get("identity", _SELF)
        if name == MANAGEMENT and identity == _SELF:
            return await Itself(self._tree, caller, asked).carry_out(operation)
        if (type_ := types_of(self._tree, asked.virtual_host).get(name)) is None:
            raise NotFound(f"Unknown type {name}")
        return await Objects(self._tree, type_, caller, asked).carry_out(operation)
