"""What can be declared and deleted, by its kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, Never

from services.common.access import questions
from services.common.access.action import Action, Kind
from services.common.access.asked import Asked
from services.common.errors import SyntaxFault
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.rabbitmq.described import describe
from services.mgmt.rabbitmq.forms import ExchangeForm, PolicyForm, QueueForm, VirtualHostForm
from services.mgmt.rabbitmq.host_said import said_in
from services.mgmt.rabbitmq.needs import to_declare_exchange, to_declare_queue
from services.mgmt.rabbitmq.reading import read
from services.mgmt.rabbitmq.sections import Broker
from services.rpc import objects_pb2 as pb


class Declared(NamedTuple):
    """What access an operation needs, and what does it."""

    needs_to_declare: Callable[[pb.DeclareRequest], Asked]
    declare: Callable[[Broker, pb.DeclareRequest], Awaitable[bool]]
    needs_to_delete: Callable[[pb.DeleteRequest], Asked]
    delete: Callable[[Broker, pb.DeleteRequest], Awaitable[int]]
    """How many messages went with it."""


def declared(kind: Any) -> Declared:  # noqa: ANN401 - a number of the contract's
    """Raises SyntaxFault for what is none of them."""
    if kind not in _DECLARED:
        raise SyntaxFault("queues, exchanges and policies are declared and deleted, and nothing else")
    return _DECLARED[kind]


async def _describe(broker: Broker, request: pb.DeclareRequest) -> bool:
    """It is there already: the router creates it."""
    await describe(broker.house, request.virtual_host, _said_of_host(request))
    return False


def _to_describe(request: pb.DeclareRequest) -> Asked:
    return questions.update(Kind.VIRTUALHOST, request.virtual_host, request.virtual_host, _said_of_host(request))


def _said_of_host(request: pb.DeclareRequest) -> dict[str, Any]:
    return said_in(read(VirtualHostForm, request.told))


def _not_to_delete(_: object) -> Never:
    raise SyntaxFault("virtual hosts are deleted by the router")


async def _declare_queue(broker: Broker, request: pb.DeclareRequest) -> bool:
    return await broker.changes.declare_queue(request.virtual_host, request.name, read(QueueForm, request.told))


async def _declare_exchange(broker: Broker, request: pb.DeclareRequest) -> bool:
    return await broker.changes.declare_exchange(request.virtual_host, request.name, read(ExchangeForm, request.told))


async def _set_policy(broker: Broker, request: pb.DeclareRequest) -> bool:
    where, told = (request.virtual_host, request.name), read(PolicyForm, request.told)
    return await broker.changes.set_policy(*where, told, operator=request.kind == pb.OPERATOR_POLICY)


async def _clear_policy(broker: Broker, request: pb.DeleteRequest) -> int:
    where = request.virtual_host, request.name
    await broker.changes.clear_policy(*where, operator=request.kind == pb.OPERATOR_POLICY)
    return 0


async def _delete_queue(broker: Broker, request: pb.DeleteRequest) -> int:
    queue = broker.objects.shared(request.virtual_host, request.name)
    return await broker.changes.delete_queue(queue, if_unused=request.if_unused, if_empty=request.if_empty)


async def _delete_exchange(broker: Broker, request: pb.DeleteRequest) -> int:
    broker.objects.exchange(request.virtual_host, request.name)
    await broker.changes.delete_exchange(request.virtual_host, request.name, if_unused=request.if_unused)
    return 0


_DECLARED: Final[Mapping[int, Declared]] = {
    pb.QUEUE: Declared(
        lambda told: to_declare_queue(told.virtual_host, told.name, read(QueueForm, told.told)),
        _declare_queue,
        lambda told: questions.of_queue(Action.DELETE, told.virtual_host, told.name, ()),
        _delete_queue,
    ),
    pb.EXCHANGE: Declared(
        lambda told: to_declare_exchange(told.virtual_host, told.name, read(ExchangeForm, told.told)),
        _declare_exchange,
        lambda told: questions.delete_exchange(told.virtual_host, told.name),
        _delete_exchange,
    ),
    pb.POLICY: Declared(
        lambda told: questions.set_policies(told.virtual_host),
        _set_policy,
        lambda told: questions.set_policies(told.virtual_host),
        _clear_policy,
    ),
    pb.VIRTUAL_HOST: Declared(_to_describe, _describe, _not_to_delete, lambda *_: _not_to_delete(_)),
    pb.OPERATOR_POLICY: Declared(lambda _: CONFIGURE, _set_policy, lambda _: CONFIGURE, _clear_policy),
}
