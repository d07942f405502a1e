"""What an address names: a queue or an exchange of the connection's virtual host (AMQP 1.0, part 3, section 3.5)."""

from __future__ import annotations

from services.common.errors import NotFound
from services.common.topology.slots import SlotName
from services.gateway import vocabulary as v
from services.gateway.operations.topology import change
from services.gateway.sessions.session import Session
from services.rpc import router_pb2


async def find(session: Session, request: v.FindNode) -> tuple[str, v.Node]:
    await session.broker.topology_known()
    for name, node in request.candidates:
        if await _IS_THERE[node](session, name):
            return name, node
    host = session.connection.virtual_host
    raise NotFound(f"no queue or exchange '{request.candidates[0][0]}' in vhost '{host}'")


def produce(session: Session, request: v.Produce) -> None:
    """It is allowed, and that was all that there was to ask."""
    session.inbound.begin(request.link, settled=request.settled)
    session.answer(request)


def end_produce(session: Session, request: v.EndProduce) -> None:
    session.inbound.end(request.link)


async def _is_queue(session: Session, name: str) -> bool:
    return SlotName(session.connection.virtual_host, name) in session.broker.topology.by_name


async def _is_exchange(session: Session, name: str) -> bool:
    try:
        async with session.broker.looking:
            await change(session, declare_exchange=router_pb2.DeclareExchange(name=name, passive=True))
    except NotFound:
        return False
    return True


_IS_THERE = {v.Node.QUEUE: _is_queue, v.Node.EXCHANGE: _is_exchange}
