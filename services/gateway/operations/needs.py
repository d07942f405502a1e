"""What each request needs to be allowed: its action, and the object that it names. The table is in `__init__.py`.

Some ask for nothing: what comes of them was asked about before (a settlement, a commit), or is only the client's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from services.common.access import questions
from services.common.access.action import Action, Kind, Property
from services.common.access.asked import Asked, Other
from services.common.access.questions import Properties
from services.common.arguments import dead_letters, life
from services.common.message import arguments
from services.common.topology import direct_reply
from services.common.topology.slots import SlotName
from services.gateway import vocabulary as v
from services.gateway.operations.topology import owner_of, routing_key

if TYPE_CHECKING:
    from services.gateway.operations.connections import Client
    from services.gateway.sessions.session import Session

Needs: TypeAlias = Callable[[Any, Any], None]
"""Asks what a session, or a connection, wants to do by a request; raises AccessRefused, or NotAllowed."""


def nothing(_asker: object, _request: v.Request) -> None:
    """Every user who is connected may."""


def each_message(_asker: object, _request: v.Publish) -> None:
    """Asked where it is looked at what is wrong with each: one that is refused does not hold up the others."""


def open_virtual_host(client: Client, request: v.Open) -> None:
    client.permitted.check(questions.open_virtual_host(request.virtual_host))


# ------------------------------------------------------------------ exchanges


def declare_exchange(session: Session, request: v.DeclareExchange) -> None:
    if request.passive:
        session.permitted.check(questions.look(Kind.EXCHANGE, _host(session), request.name))
        return
    alternate = _text(request.arguments.get("alternate-exchange"))
    life = questions.life(durable=request.durable, temporary=request.auto_delete)
    its: Properties = (*life, (Property.TYPE, request.type))
    session.permitted.check(questions.create_exchange(_host(session), request.name, alternate, its))


def delete_exchange(session: Session, request: v.DeleteExchange) -> None:
    session.permitted.check(questions.delete_exchange(_host(session), request.name))


def bind(session: Session, request: v.Bind) -> None:
    _bind(Action.BIND, session, request)


def unbind(session: Session, request: v.Unbind) -> None:
    _bind(Action.UNBIND, session, request)


def _bind(action: Action, session: Session, request: v.Bind | v.Unbind) -> None:
    kind = Kind.EXCHANGE if request.to_exchange else Kind.QUEUE
    destination = request.destination or ("" if request.to_exchange else session.last_queue)
    its = () if request.to_exchange else _of(session, destination)
    key = (Property.ROUTING_KEY, routing_key(session, request))
    session.permitted.check(
        questions.bind(action, _host(session), request.source, Other(kind, destination), (*its, key))
    )


def find_binding(session: Session, request: v.FindBinding) -> None:
    session.permitted.check(questions.look(Kind.EXCHANGE, _host(session), request.exchange))
    if request.queue is not None:
        session.permitted.check(questions.look(Kind.QUEUE, _host(session), request.queue))


# ------------------------------------------------------------------ queues


def declare_queue(session: Session, request: v.DeclareQueue) -> None:
    name = request.name or (session.last_queue if request.passive else "")
    if request.passive:
        if not direct_reply.is_meant(name):
            session.permitted.check(questions.look(Kind.QUEUE, _host(session), name))
        return
    # Of a queue that is there as well: whether it is, the router alone knows, and it may be gone by then.
    letters = dead_letters.letters_of(request.arguments, name, partial(_is_exchange, session))
    exclusive, temporary = life.told(request.arguments)
    its = questions.queue(
        durable=request.durable,
        exclusive=request.exclusive or exclusive,
        auto_delete=request.auto_delete or temporary or bool(request.lifetime),
    )
    session.permitted.check(questions.create_queue(_host(session), name, letters, its))


def _is_exchange(session: Session, name: str) -> bool | None:
    """None: this gateway does not know, or what it knows is of former times."""
    broker = session.broker
    known = broker.bindings.whole and broker.topology.has_place()
    return broker.bindings.has_exchange(_host(session), name) if known else None


def delete_queue(session: Session, request: v.DeleteQueue) -> None:
    _of_queue(Action.DELETE, session, request.name)


def replace_queue(session: Session, request: v.ReplaceQueue) -> None:
    """Also what its client wants of it next: who may not have that keeps the former. The same one stays."""
    known = session.broker.topology.by_name.get(SlotName(_host(session), request.queue.name))
    if known and known.arguments != arguments.dump(request.queue.arguments):
        _of_queue(Action.DELETE, session, request.queue.name)
    declare_queue(session, request.queue)
    _of_queue(Action.CONSUME, session, request.queue.name)
    _bind(Action.BIND, session, request.binding)


def purge_queue(session: Session, request: v.PurgeQueue) -> None:
    _of_queue(Action.PURGE, session, request.name)


def consume(session: Session, request: v.Consume) -> None:
    own = request.queue == direct_reply.PSEUDO_QUEUE or (request.queue == v.MANAGEMENT and session.broker.management)
    if not own:  # a queue of the client's own, which no other client can name
        _of_queue(Action.CONSUME, session, request.queue)


def cancel(session: Session, request: v.Cancel) -> None:
    consumer = session.consumers.get(request.tag) if request.deletes else None
    if consumer and (definition := session.broker.topology.queues.get(consumer.queue_id)):
        _of_queue(Action.DELETE, session, definition.name)


def get(session: Session, request: v.Get) -> None:
    _of_queue(Action.CONSUME, session, request.queue)


def _of_queue(action: Action, session: Session, name: str) -> None:
    """Without a name, the session's last queue is meant; where there is none, nothing is done."""
    if name := name or session.last_queue:
        session.permitted.check(questions.of_queue(action, _host(session), name, _of(session, name)))


# ------------------------------------------------------------------ links of AMQP 1.0


def find_node(session: Session, request: v.FindNode) -> None:
    """Who may do nothing to any of them is not told whether it is there."""
    session.permitted.check_one_of([_look(session, *each, to_send=request.to_send) for each in request.candidates])


def _look(session: Session, name: str, node: v.Node, *, to_send: bool) -> Asked:
    if to_send and node is v.Node.QUEUE:
        return questions.publish(_host(session), "", name)
    return questions.look(Kind.QUEUE if node is v.Node.QUEUE else Kind.EXCHANGE, _host(session), name)


def produce(session: Session, request: v.Produce) -> None:
    asked = questions.publish(_host(session), request.exchange, request.routing_key or "")
    if request.routing_key is None:
        session.permitted.check_some_key(asked)
    else:
        session.permitted.check(asked)


# ------------------------------------------------------------------ what objects are like


def _host(session: Session) -> str:
    return session.connection.virtual_host


def _text(value: object) -> str | None:
    """Of an argument; what is no text the router refuses."""
    return value if isinstance(value, str) else None


def _of(session: Session, name: str) -> Properties:
    """Of a queue that is there."""
    definition = session.broker.topology.by_name.get(SlotName(_host(session), name))
    if definition is None:
        return ()
    exclusive = bool(owner_of(definition))
    return questions.queue(durable=definition.durable, exclusive=exclusive, auto_delete=definition.auto_delete)
