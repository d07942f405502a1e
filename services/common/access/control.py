"""Who decides: access controls, one after the other, those of the virtual host before those of the broker.

The first that does not defer decides; when nobody does, it is denied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from services.common.access.asked import Asked, Principal
from services.common.access.verdict import Decision, Verdict

if TYPE_CHECKING:
    from services.common.access.rules import Rules

_OPERATOR = Verdict(Decision.ALLOWED, "whoever runs the stack may do everything")
_NOBODY = Verdict(Decision.DENIED, "no rule decides")


class AccessControl(Protocol):
    """A kind of rules; a plug-in (`hopline.access_control`)."""

    def at_virtual_host(self, principal: Principal, asked: Asked, rules: Rules) -> Verdict:
        """By what is set for the object's virtual host."""

    def at_broker(self, principal: Principal, asked: Asked, rules: Rules) -> Verdict:
        """By what is set for all of it."""


def decide(controls: Iterable[AccessControl], principal: Principal, asked: Asked, rules: Rules) -> Verdict:
    """ALLOWED or DENIED; pure: the same question under the same rules has the same answer."""
    if principal.operator:
        return _OPERATOR
    controls = tuple(controls)
    levels = [each.at_virtual_host for each in controls] if asked.virtual_host else []
    by_key = False
    for level in [*levels, *(each.at_broker for each in controls)]:
        verdict = level(principal, asked, rules)
        by_key = by_key or verdict.by_key
        if verdict.decision is not Decision.DEFERRED:
            return verdict.perhaps_by_key(by_key)
    return _NOBODY.perhaps_by_key(by_key)
