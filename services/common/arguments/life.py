"""Broker-J's words for whose a queue is and until when it is there: as a client's arguments, besides 0-9-1's flags.

A queue of a connection or a session goes with that; Broker-J would leave it to others, unless it is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from services.common.arguments import queue
from services.common.arguments.argument import Said
from services.common.topology.life import Scope, Unused

_OWNERS: Final[Mapping[str, Scope]] = {"NONE": Scope.NOBODY} | {
    word: Scope(word.lower()) for word in queue.OWNERS if word != "NONE"
}
_LIFETIMES: Final[Mapping[str, tuple[Scope, Unused]]] = {
    queue.PERMANENT: (Scope.NOBODY, Unused.STAYS),
    "DELETE_ON_CONNECTION_CLOSE": (Scope.CONNECTION, Unused.STAYS),
    "DELETE_ON_SESSION_END": (Scope.SESSION, Unused.STAYS),
    "DELETE_ON_NO_OUTBOUND_LINKS": (Scope.NOBODY, Unused.NO_CONSUMERS),
    "DELETE_ON_NO_LINKS": (Scope.NOBODY, Unused.NO_CONSUMERS),
}
_WITH_ITS_OWNER: Final = frozenset({Scope.CONNECTION, Scope.SESSION})


_EXCLUSIVITY: Final = (queue.EXCLUSIVITY.name, "qpid.exclusivity_policy")
_LIFETIME: Final = (queue.LIFETIME.name, "qpid.lifetime_policy")


def may_end(table: Mapping[str, object]) -> bool:
    """Whether a client's arguments may say that the queue goes with a connection, or a session."""
    return any(name in table for name in (*_EXCLUSIVITY, *_LIFETIME))


def told(table: Mapping[str, object]) -> tuple[bool, bool]:
    """Whether a client's arguments say that the queue is somebody's alone, and that it goes by itself."""
    exclusive = any(table.get(name, "NONE") != "NONE" for name in _EXCLUSIVITY)
    return exclusive, any(table.get(name, queue.PERMANENT) != queue.PERMANENT for name in _LIFETIME)


class Contradiction(Exception):
    """Arguments and flags say different things: which argument, and why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(why)
        self.name, self.why = name, why


class Wished(NamedTuple):
    """Of what kind its owner is, of what kind whoever it does not outlive is, and when it goes for want of use."""

    owner: Scope
    until: Scope
    unused: Unused


def wished(found: Said, *, exclusive: bool, auto_delete: bool) -> Wished:
    """By flags and arguments together. Raises Contradiction."""
    owner = Scope.CONNECTION if exclusive else Scope.NOBODY
    if (policy := queue.EXCLUSIVITY.of(found)) is not None:
        if exclusive and _OWNERS[policy] is not owner:
            raise Contradiction(queue.EXCLUSIVITY.name, "says something else than that the queue is exclusive")
        owner = _OWNERS[policy]
    its_own = owner if owner in _WITH_ITS_OWNER else Scope.NOBODY
    by_flag = Unused.NO_CONSUMERS if auto_delete else Unused.STAYS
    if (lifetime := queue.LIFETIME.of(found)) is None:
        return Wished(owner, its_own, by_flag)
    until, unused = _LIFETIMES[lifetime]
    if lifetime == queue.PERMANENT and (auto_delete or its_own):
        raise Contradiction(queue.LIFETIME.name, "says something else than that the queue goes by itself")
    # Nobody could use it who is not the session.
    return Wished(owner, its_own if its_own is Scope.SESSION else until or its_own, by_flag or unused)
