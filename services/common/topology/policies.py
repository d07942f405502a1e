"""Policies of a virtual host, as RabbitMQ's: by pattern and priority, one and an operator's one for each queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from services.common.access.expression import searching
from services.common.arguments import policies
from services.common.arguments.queue import QUORUM

ALL: Final = "all"
_QUEUES: Final = "queues"
_EXCHANGES: Final = "exchanges"
_CLASSIC: Final = "classic_queues"
_QUORUMS: Final = "quorum_queues"
_STREAMS: Final = "streams"
APPLY_TO: Final = (ALL, _QUEUES, _EXCHANGES, _CLASSIC, _QUORUMS, _STREAMS)


@dataclass(frozen=True, slots=True)
class Policy:
    """`definition` is JSON (`services/common/arguments/policies.py`). An `operator`'s is of another name space."""

    virtual_host: str
    name: str
    pattern: str
    definition: bytes
    apply_to: str = ALL
    priority: int = 0
    operator: bool = False


class Governing(NamedTuple):
    """The two of a queue."""

    policy: Policy | None
    operator: Policy | None

    @property
    def definition(self) -> dict[str, object]:
        """What they say together."""
        if self.policy is None and self.operator is None:
            return {}
        mine, its = (policies.loaded(each.definition) if each else {} for each in self)
        return policies.merged(mine, its)


class Policies:
    """Of one virtual host."""

    def __init__(self, known: Iterable[Policy] = ()) -> None:
        self._known = {(each.operator, each.name): each for each in known}
        self._ordered: list[Policy] | None = None
        self._endless: set[str] = set()  # patterns that took too long once: asked for each queue, they would stop all

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Policy]:
        return iter(self._known.values())

    def get(self, name: str, *, operator: bool) -> Policy | None:
        """The one of that name."""
        return self._known.get((operator, name))

    def set(self, policy: Policy) -> None:
        """In place of another one of its name."""
        self._known[policy.operator, policy.name] = policy
        self._ordered = None

    def clear(self, name: str, *, operator: bool) -> None:
        """There is none of that name any more."""
        self._known.pop((operator, name), None)
        self._ordered = None

    def of(self, queue: str, type_: str) -> Governing:
        """Those of a queue whose arguments ask for a type: the highest priorities, of equal ones the first by name."""
        fitting = [each for each in self._in_order() if self._is_for(each, queue, type_)]
        first = (next((each for each in fitting if each.operator is operator), None) for operator in (False, True))
        return Governing(*first)

    def _in_order(self) -> list[Policy]:
        if self._ordered is None:
            self._ordered = sorted(self, key=lambda each: (-each.priority, each.name))
        return self._ordered

    def _is_for(self, policy: Policy, queue: str, type_: str) -> bool:
        quorum = _QUORUMS if type_ == QUORUM else _CLASSIC
        return policy.apply_to in (ALL, _QUEUES, quorum) and self._matches(policy.pattern, queue)

    def _matches(self, pattern: str, name: str) -> bool:
        if not pattern or pattern in self._endless:
            return not pattern
        try:
            return searching(pattern)(name)
        except TimeoutError:
            self._endless.add(pattern)
            return False
