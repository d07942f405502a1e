"""Who decides: access controls, one after the other, those of the virtual host before those of the broker.

The first that does not defer decides; when nobody does, it is denied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from services.common.access.asked import Asked, Principal
from services.common.access.verdict import Decision, Verdict

if TYPE_CHECKING:
    from services.common.access.rules import Rules

_OPERATOR = Verdict(Decision.ALLOWED, "whoever runs the stack may do everything")
NOBODY = Verdict(Decision.DENIED, "no rule decides")
"""When all defer."""


Level: TypeAlias = "Callable[[Principal, Asked, Rules], Verdict]"


class AccessControl(Protocol):
    """A kind of rules; a plug-in (`hopline.access_control`)."""

    def at_virtual_host(self, principal: Principal, asked: Asked, rules: Rules) -> Verdict:
        """By what is set for the object's virtual host."""

    def at_broker(self, principal: Principal, asked: Asked, rules: Rules) -> Verdict:
        """By what is set for all of it."""


def levels_of(controls: Iterable[AccessControl], asked: Asked) -> list[Level]:
    """Who is asked, one after the other."""
    controls = tuple(controls)
    levels: list[Level] = [each.at_broker for each in controls]
    return [each.at_virtual_host for each in controls] + levels if asked.virtual_host else levels


def decide(controls: Iterable[AccessControl], principal: Principal, asked: Asked, rules: Rules) -> Verdict:
    """ALLOWED or DENIED; pure: the same question under the same rules has the same answer."""
    if principal.operator:
        return _OPERATOR
    by_key = False
    for level in levels_of(controls, asked):
        verdict = level(principal, asked, rules)
        by_key = by_key or verdict.by_key
        if verdict.decision is not Decision.DEFERRED:
            return verdict.perhaps_by_key(by_key)
    return NOBODY.perhaps_by_key(by_key)
