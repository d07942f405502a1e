"""The rules of an ACL file: the first that fits decides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.common.access.acl.firewall import NameUnknown
from services.common.access.acl.rule import Rule
from services.common.access.action import Action, Property
from services.common.access.asked import Asked, Principal
from services.common.access.verdict import DEFERRED, Decision, Verdict


@dataclass(frozen=True, slots=True)
class RuleSet:
    """`default` is for operations that no rule is about at all; where rules are, and none fits, it is deferred.

    That is Broker-J's reading: "ACL ALLOW anna PUBLISH EXCHANGE" leaves what others publish to whoever is asked next.
    """

    rules: tuple[Rule, ...] = ()
    default: Decision = Decision.DENIED

    def decide(self, principal: Principal, asked: Asked) -> Verdict:
        """As AccessControl says."""
        if asked.action is Action.LOOK:
            # No rule can be about it. Broker-J lets everybody look.
            return DEFERRED if self.default is Decision.DEFERRED else Verdict(Decision.ALLOWED, "acl: all may look")
        about = [rule for rule in self.rules if rule.is_about(asked)]
        if not about:
            return Verdict(self.default, f"acl: {self._told_default(asked)}")
        return self._first(about, principal, asked)

    def _first(self, rules: Iterable[Rule], principal: Principal, asked: Asked) -> Verdict:
        by_key = False
        for rule in rules:
            if not rule.is_for(principal):
                continue
            try:
                if not rule.fits(principal, asked):
                    continue
            except NameUnknown:
                return Verdict(Decision.DENIED, f"acl: {rule.text} (it is not known what {principal.host} is called)")
            by_key = by_key or rule.by_key
            if rule.fits_key(principal, asked):
                decision = Decision.ALLOWED if rule.outcome.allows else Decision.DENIED
                return Verdict(decision, f"acl: {rule.text}", by_key=by_key, logged=rule.outcome.logged)
        return DEFERRED.perhaps_by_key(by_key)

    @property
    def wants_names(self) -> bool:
        """Whether a rule asks what a client's host is called."""
        return any(Property.FROM_HOSTNAME in rule.properties for rule in self.rules)

    def _told_default(self, asked: Asked) -> str:
        return f"no rule is about {asked.action.value} {asked.kind.value}, and the default is {self.default.value}"


@dataclass(frozen=True, slots=True)
class _Unreadable(RuleSet):
    """In place of rules that cannot be read."""

    def decide(self, principal: Principal, asked: Asked) -> Verdict:  # noqa: ARG002 - whatever it is
        """Nobody knows what they would have denied."""
        return Verdict(Decision.DENIED, "acl: the rules on record cannot be read; load them again")


UNREADABLE = _Unreadable()
