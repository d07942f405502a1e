"""Decides questions: access controls are asked in their order, first for the virtual host, then for the broker.

The first that does not defer decides; if all defer, it is denied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeAlias

from services.common.access.asked import Asked, Principal
from services.common.access.verdict import Decision, Verdict

if TYPE_CHECKING:
    from services.common.access.rules import Rules

_OPERATOR = Verdict(Decision.ALLOWED, "whoever runs the stack may do everything")
NOBODY = Verdict(Decision.DENIED, "no rule decides")
"""The verdict when all controls defer."""


Level: TypeAlias = "Callable[[Principal, Asked, Rules], Verdict]"


class AccessControl(Protocol):
    """A kind of rules; a plug-in (`hopline.access_control`).

    A verdict for which it looked at the routing key says so (`Verdict.by_key`): any other is remembered for all keys.
    """

    def at_virtual_host(self, principal: Principal, asked: Asked, rules: Rules) -> Verdict:
        """Decides by the rules of the object's virtual host."""

    def at_broker(self, principal: Principal, asked: Asked, rules: Rules) -> Verdict:
        """Decides by the rules of the broker."""


@lru_cache(16)
def levels_of(controls: tuple[AccessControl, ...], *, in_virtual_host: bool) -> tuple[Level, ...]:
    """The controls' methods, in the order in which they are asked."""
    levels: list[Level] = [each.at_virtual_host for each in controls] if in_virtual_host else []
    return (*levels, *(each.at_broker for each in controls))


def decide(controls: Iterable[AccessControl], principal: Principal, asked: Asked, rules: Rules) -> Verdict:
    """ALLOWED or DENIED; pure: the same question under the same rules has the same answer."""
    if principal.operator:
        return _OPERATOR
    by_key = False
    for level in levels_of(tuple(controls), in_virtual_host=bool(asked.virtual_host)):
        verdict = level(principal, asked, rules)
        by_key = by_key or verdict.by_key
        if verdict.decision is not Decision.DEFERRED:
            return verdict.perhaps_by_key(by_key)
    return NOBODY.perhaps_by_key(by_key)
