"""Access control that allows every user everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.common.access.asked import Asked, Principal
from services.common.access.verdict import DEFERRED, Decision, Verdict

if TYPE_CHECKING:
    from services.common.access.rules import Rules

_ALLOWED = Verdict(Decision.ALLOWED, "allow_all: everybody may do everything")


class AllowAll:
    """As AccessControl says."""

    def at_virtual_host(self, principal: Principal, asked: Asked, rules: Rules) -> Verdict:  # noqa: ARG002 - as said
        """Defers, so that other controls' rules for the virtual host are asked first."""
        return DEFERRED

    def at_broker(self, principal: Principal, asked: Asked, rules: Rules) -> Verdict:  # noqa: ARG002 - as said
        """Allows everything."""
        return _ALLOWED
