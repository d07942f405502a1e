"""What a connection publishes where it is a consumer as well.

A consumer that does not want that (no-local) costs only its connection: what that publishes says which connection has
published it, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from services.common.clients.outbound import Targets
from services.common.message.alike import are_alike, objects
from services.common.message.facts import Facts
from services.common.topology.slots import SlotId
from services.common.topology.targets import NotLocal
from services.gateway.sessions.session import Session


def told(facts: Sequence[Facts], publisher: str) -> list[Facts]:
    """The same with who has published them; equal ones are one object."""
    its = {each: each._replace(publisher=publisher) for each in dict.fromkeys(facts)}
    return [its[each] for each in facts]


def spared(targets: Sequence[Targets], queues: AbstractSet[SlotId]) -> list[Targets]:
    """The same without these queues; equal ones are one object."""
    its = {every: tuple(each for each in every if each not in queues) for every in dict.fromkeys(targets)}
    return [its[every] for every in targets]


def not_local(targets: Sequence[Targets], sessions: Mapping[int, Session]) -> Sequence[Targets]:
    """The same without queues that these consume, where the message came only by bindings that spare them."""
    if are_alike(targets) and not isinstance(targets[0], NotLocal):
        return targets  # before a look at sessions, of which there may be many
    if not any(session.consumers for session in sessions.values()):
        return targets
    every = objects(targets)
    if not any(isinstance(each, NotLocal) for each in every.values()):
        return targets
    consumed = {each.queue_id for session in sessions.values() for each in session.consumers.values()}
    its = {key: each.of_consumer(consumed) if isinstance(each, NotLocal) else each for key, each in every.items()}
    return [its[id(each)] for each in targets]


def takes_from(sessions: Iterable[Session]) -> set[SlotId]:
    """The queues that these consume, or hold deliveries of."""
    found = set[SlotId]()
    for session in sessions:
        found.update(each.queue_id for each in session.consumers.values() if each.takes)
        found.update(holder.queue_id for holder, _ in session.holdings())
    return found
