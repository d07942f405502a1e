"""exchange.declare (AMQP 0-9-1, 1.6.2.1), with `internal` and `alternate-exchange` as RabbitMQ has them."""

from __future__ import annotations

from services.common.arguments import checks
from services.common.errors import CommandInvalid, PreconditionFailed
from services.common.message import arguments
from services.common.topology.definitions import Exchange
from services.router.topology import access, equivalence, names
from services.router.topology.effects import Effects
from services.router.topology.outcome import Outcome
from services.router.topology.state import TopologyState
from services.rpc.router_pb2 import ChangeRequest, DeclareExchange

_ALTERNATE = "alternate-exchange"


def declare_exchange(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """Raises NotFound (passive), CommandInvalid (unknown type), PreconditionFailed, AccessRefused (reserved name)."""
    host, declare = state.host(request.virtual_host), request.declare_exchange
    names.check_not_default(declare.name)
    if declare.passive:
        access.find_exchange(host, declare.name)
        return Outcome()
    if declare.type not in state.kinds.exchange_types:
        raise CommandInvalid(f"unknown exchange type '{declare.type}'")
    if known := host.sources.get(declare.name):
        _check_same(known.definition, declare)
        return Outcome()
    host.add_exchange(_create(host.name, declare), effects)
    return Outcome(created=True)


def _create(virtual_host: str, declare: DeclareExchange) -> Exchange:
    names.check_new("exchange", declare.name)
    alternate = arguments.declared(declare.arguments).get(_ALTERNATE)
    if alternate is not None and (wrong := checks.name(alternate)):
        thing = names.called("exchange", declare.name, virtual_host)
        raise PreconditionFailed(f"invalid arg '{_ALTERNATE}' for {thing}: {wrong}")
    return Exchange(
        virtual_host=virtual_host,
        name=declare.name,
        type=declare.type,
        durable=declare.durable,
        auto_delete=declare.auto_delete,
        internal=declare.internal,
        arguments=declare.arguments,
    )


def _check_same(known: Exchange, declare: DeclareExchange) -> None:
    thing = names.called("exchange", known.name, known.virtual_host)
    equivalence.check_property("type", thing, declare.type, known.type)
    equivalence.check_property("durable", thing, declare.durable, known.durable)
    equivalence.check_property("auto_delete", thing, declare.auto_delete, known.auto_delete)
    equivalence.check_property("internal", thing, declare.internal, known.internal)
    current = arguments.load(known.arguments)
    equivalence.check_arguments((_ALTERNATE,), thing, arguments.load(declare.arguments), current)
