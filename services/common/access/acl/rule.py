"""One rule of an ACL file: which user may, or may not, do what to which objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from services.common.access.acl.predicates import Predicate, Values, predicate
from services.common.access.action import Action, Kind, Property
from services.common.access.asked import Asked, Principal

ALL = "ALL"
SUPPORTED: Mapping[Kind, frozenset[Action]] = {
    Kind.VIRTUALHOSTNODE: frozenset({Action.CREATE, Action.DELETE, Action.UPDATE, Action.INVOKE}),
    Kind.VIRTUALHOST: frozenset(
        {Action.ACCESS, Action.CREATE, Action.DELETE, Action.UPDATE, Action.ACCESS_LOGS, Action.INVOKE}
    ),
    Kind.MANAGEMENT: frozenset({Action.ACCESS}),
    Kind.QUEUE: frozenset({Action.CREATE, Action.DELETE, Action.PURGE, Action.CONSUME, Action.UPDATE, Action.INVOKE}),
    Kind.EXCHANGE: frozenset(
        {
            Action.ACCESS,
            Action.CREATE,
            Action.DELETE,
            Action.BIND,
            Action.UNBIND,
            Action.PUBLISH,
            Action.UPDATE,
            Action.INVOKE,
        }
    ),
    Kind.METHOD: frozenset({Action.ACCESS, Action.UPDATE}),
    Kind.USER: frozenset({Action.CREATE, Action.DELETE, Action.UPDATE, Action.INVOKE}),
    Kind.GROUP: frozenset({Action.CREATE, Action.DELETE, Action.UPDATE, Action.INVOKE}),
    Kind.BROKER: frozenset({Action.CONFIGURE, Action.ACCESS_LOGS, Action.SHUTDOWN, Action.INVOKE}),
}
"""The actions that a rule for each kind may name; a rule for ALL kinds, or ALL operations, may always be."""


class Outcome(Enum):
    """A rule's decision where it fits; LOG: it is also logged."""

    ALLOW = "ALLOW"
    ALLOW_LOG = "ALLOW-LOG"
    DENY = "DENY"
    DENY_LOG = "DENY-LOG"

    @property
    def allows(self) -> bool:
        return self in {Outcome.ALLOW, Outcome.ALLOW_LOG}

    @property
    def logged(self) -> bool:
        return self in {Outcome.ALLOW_LOG, Outcome.DENY_LOG}


@dataclass(frozen=True, slots=True)
class Rule:
    """`action` and `kind` None: all of them. `text`: the rule as in the file, on one line."""

    outcome: Outcome
    identity: str
    action: Action | None
    kind: Kind | None
    properties: Mapping[Property, Values]
    text: str
    by_key: bool = field(init=False)
    _fits: tuple[Predicate, ...] = field(init=False, repr=False)
    _for_all: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Raises SyntaxFault for a value that a property cannot have."""
        its = ((wanted, values) for wanted, values in self.properties.items() if wanted is not Property.ROUTING_KEY)
        object.__setattr__(self, "by_key", Property.ROUTING_KEY in self.properties)
        object.__setattr__(self, "_fits", tuple(predicate(*each) for each in its))
        object.__setattr__(self, "_for_all", self.identity.upper() == ALL)

    def is_about(self, asked: Asked) -> bool:
        """Whether the rule covers such an operation."""
        return self.action in {None, asked.action} and self.kind in {None, asked.kind}

    def is_for(self, principal: Principal) -> bool:
        """Whether it names the user, or a group of the user's."""
        identity = self.identity
        return self._for_all or identity == principal.name or identity in principal.groups

    def fits(self, principal: Principal, asked: Asked) -> bool:
        """Whether the object fits the rule, apart from its routing key: for that see `choice.py`."""
        return all(each(principal, asked) for each in self._fits)
