"""The rules of an ACL file: the first that fits decides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from services.common.access.acl.choice import Choice, Choices, verdict_of
from services.common.access.acl.firewall import NameUnknown
from services.common.access.acl.rule import Rule
from services.common.access.action import Action, Kind, Property
from services.common.access.asked import Asked, Principal
from services.common.access.verdict import DEFERRED, Decision, Verdict


@dataclass(frozen=True, slots=True)
class RuleSet:
    """`default` decides operations that no rule covers; where rules cover it and none fits, the decision is deferred.

    That is Broker-J's reading: "ACL ALLOW anna PUBLISH EXCHANGE" leaves other users' publishing to the next control.
    """

    rules: tuple[Rule, ...] = ()
    default: Decision = Decision.DENIED
    wants_names: bool = field(init=False)
    """Whether a rule names clients' hosts, so that host names must be looked up."""
    _about: dict[tuple[Action, Kind], tuple[Rule, ...]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _choices: Choices = field(init=False, repr=False, compare=False, default_factory=Choices)

    def __post_init__(self) -> None:
        """Prepares what does not change: there may be thousands of rules."""
        names = any(Property.FROM_HOSTNAME in rule.properties for rule in self.rules)
        object.__setattr__(self, "wants_names", names)

    def decide(self, principal: Principal, asked: Asked) -> Verdict:
        """As AccessControl says."""
        if asked.action is Action.LOOK:
            # No rule can cover it. Broker-J lets every user look.
            return DEFERRED if self.default is Decision.DEFERRED else Verdict(Decision.ALLOWED, "acl: all may look")
        choice = self._choices.find(principal, asked)
        if choice is None:
            about = self._rules_about(asked)
            if not about:
                return Verdict(self.default, f"acl: {self._told_default(asked)}")
            choice = _choose(about, principal, asked)
            self._choices.remember(principal, asked, choice)
        return choice.verdict(asked.value_of(Property.ROUTING_KEY))

    def _rules_about(self, asked: Asked) -> tuple[Rule, ...]:
        about = self._about.get((asked.action, asked.kind))
        if about is None:
            about = self._about[asked.action, asked.kind] = tuple(rule for rule in self.rules if rule.is_about(asked))
        return about

    def _told_default(self, asked: Asked) -> str:
        return f"no rule is about {asked.action.value} {asked.kind.value}, and the default is {self.default.value}"


def _choose(about: Iterable[Rule], principal: Principal, asked: Asked) -> Choice:
    by_key: list[Rule] = []
    for rule in about:
        if not rule.is_for(principal):
            continue
        try:
            if not rule.fits(principal, asked):
                continue
        except NameUnknown:
            told = f"acl: {rule.text} (it is not known what {principal.host} is called)"
            return Choice(by_key, Verdict(Decision.DENIED, told))
        if not rule.by_key:
            return Choice(by_key, verdict_of(rule))
        by_key.append(rule)
    return Choice(by_key, DEFERRED)


@dataclass(frozen=True, slots=True)
class _Unreadable(RuleSet):
    """Stands in for rules that cannot be read."""

    def decide(self, principal: Principal, asked: Asked) -> Verdict:  # noqa: ARG002 - whatever it is
        """Denies, since it is not known what the rules would have denied."""
        return Verdict(Decision.DENIED, "acl: the rules on record cannot be read; load them again")


UNREADABLE = _Unreadable()
