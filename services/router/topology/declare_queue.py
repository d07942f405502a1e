"""queue.declare (AMQP 0-9-1, 1.7.2.1)."""

from __future__ import annotations

from services.common.arguments import changed
from services.common.arguments.alternates import Alternate, is_said_in
from services.common.arguments.argument import Said
from services.common.arguments.life import Contradiction, Wished, wished
from services.common.arguments.reading import said
from services.common.errors import PreconditionFailed
from services.common.message import arguments
from services.common.partition import partition_of
from services.common.topology.definitions import Queue
from services.common.topology.life import ANY_LINK, Asker, Life, Party, Scope, Unused
from services.common.topology.slots import SlotName
from services.router.topology import access, alternates, equivalence, names, queue_arguments
from services.router.topology.effects import Effects
from services.router.topology.outcome import Outcome
from services.router.topology.state import TopologyState
from services.router.topology.virtual_host import VirtualHost
from services.rpc.router_pb2 import ChangeRequest, DeclareQueue


def declare_queue(state: TopologyState, request: ChangeRequest, effects: Effects) -> Outcome:
    """Raises NotFound (passive), ResourceLocked, PreconditionFailed, AccessRefused (reserved name)."""
    host, declare, whose = state.host(request.virtual_host), request.declare_queue, access.asker(request)
    if declare.passive:
        return Outcome(access.find_queue(host, declare.name, whose))
    if known := host.queues.get(declare.name):
        _check_same(host, known, declare, whose)
        if _has_room(state, host):
            make(state, host, alternates.still_of(known, arguments.load(declare.arguments)), effects)
        return Outcome(known)
    check_room(state, host, declare.name)
    queue, its = declared(state, host, declare, whose)
    make(state, host, its, effects, with_queue=1)
    state.add_queue(queue, effects)
    return Outcome(queue, created=True)


def make(
    state: TopologyState, host: VirtualHost, its: list[Alternate], effects: Effects, *, with_queue: int = 0
) -> None:
    """Where its dead letters go: what has gone of it since is made again, so that there is room for the queue, too."""
    for name in alternates.to_make(host, its):
        check_room(state, host, name, with_queue)
        state.add_queue(alternates.make(state, host, name), effects)


def check_room(state: TopologyState, host: VirtualHost, name: str, more: int = 0) -> None:
    """Raises PreconditionFailed where the virtual host has its most queues, in RabbitMQ's words."""
    if not _has_room(state, host, more):
        most = state.most_queues(host.name)
        raise PreconditionFailed(
            f"cannot declare queue '{name}': queue limit in vhost '{host.name}' ({most}) is reached"
        )


def _has_room(state: TopologyState, host: VirtualHost, more: int = 0) -> bool:
    most = state.most_queues(host.name)
    return most is None or len(host.queues) + more < most


def declared(
    state: TopologyState, host: VirtualHost, declare: DeclareQueue, whose: Asker
) -> tuple[Queue, list[Alternate]]:
    """The queue as it would be, and where its dead letters would go; raises as `declare_queue` does."""
    if declare.name:
        names.check_new("queue", declare.name, exclusive=declare.exclusive, restored=declare.restored)
    name = declare.name or f"{names.MADE}{state.new_name()}"
    table = arguments.declared(declare.arguments)
    wish = _wish(said(table), declare, name, host.name)
    life = _life(declare, whose, wish)
    its = alternates.read(table, name, host.name, life)
    found = queue_arguments.check(table, name, host.name, state.kinds, alternates.sayings(host, its))
    alternates.check_there(host, its, name, whose, durable=declare.durable)
    kind = queue_arguments.queue_type(found, name, host.name, durable=declare.durable, exclusive=bool(wish.owner))
    queue = Queue(
        id=state.new_id(),
        virtual_host=host.name,
        name=name,
        partition=partition_of(SlotName(host.name, name), state.partitions),
        durable=declare.durable,
        owner=_party(whose, wish.owner),
        life=life,
        arguments=arguments.dump(alternates.kept(table, found, its)) if is_said_in(table) else declare.arguments,
        type=kind,
    )
    return queue, its


def _life(declare: DeclareQueue, whose: Asker, wish: Wished) -> Life:
    """As arguments and flags say, or as the link that makes it."""
    until = _party(whose, wish.until)
    if not declare.lifetime:
        return Life(until, wish.unused)
    maker = _party_of_link(whose)
    if declare.lifetime == Scope.LINK:
        return Life(maker)
    return Life(until, Unused(declare.lifetime), maker)


def _party_of_link(whose: Asker) -> Party:
    if not (link := whose.party(Scope.LINK)):
        raise PreconditionFailed("a queue that goes with a link is made by one")
    return link


def _wish(found: Said, declare: DeclareQueue, name: str, virtual_host: str) -> Wished:
    try:
        return wished(found, exclusive=declare.exclusive, auto_delete=declare.auto_delete)
    except Contradiction as error:
        thing = names.called("queue", name, virtual_host)
        raise PreconditionFailed(f"invalid arg '{error.name}' for {thing}: {error.why}") from None


def _party(whose: Asker, scope: Scope) -> Party:
    if scope is Scope.LINK:
        return ANY_LINK
    party = whose.party(scope)
    if scope and not party:
        raise PreconditionFailed(f"an exclusive queue needs a {scope} to belong to")
    return party


def _is_former(known: Queue) -> bool:
    """Whether a release declared it to which what its arguments say of owner and life meant nothing."""
    by_connection = known.owner.scope is Scope.CONNECTION
    try:
        said_then = wished(
            said(arguments.load(known.arguments)), exclusive=by_connection, auto_delete=known.auto_delete
        )
    except Contradiction:
        return True
    return said_then != (known.owner.scope, known.life.until.scope, known.life.unused)


def _check_same(host: VirtualHost, known: Queue, declare: DeclareQueue, whose: Asker) -> None:
    heeded = {} if _is_former(known) else said(arguments.load(declare.arguments))
    wish = _wish(heeded, declare, known.name, known.virtual_host)
    if known.owner != _party(whose, wish.owner):
        raise access.locked(known)
    thing = names.called("queue", known.name, known.virtual_host)
    equivalence.check_property("durable", thing, declare.durable, known.durable)
    equivalence.check_property("auto_delete", thing, wish.unused is Unused.NO_CONSUMERS, known.auto_delete)
    received = queue_arguments.compared(alternates.to_compare(host, arguments.load(declare.arguments), known))
    if known.changed and received == queue_arguments.compared(
        arguments.load(changed.now(known.arguments, known.changed))
    ):
        return
    current = queue_arguments.compared(arguments.load(known.arguments))
    equivalence.check_arguments(queue_arguments.COMPARED, thing, received, current)
