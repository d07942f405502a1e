"""Access control by rules of ACL files: those of the virtual host first, then the broker's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.common.access.asked import Asked, Principal
from services.common.access.verdict import DEFERRED, Verdict

if TYPE_CHECKING:
    from services.common.access.rules import Rules


class Acl:
    """Defers where no rules are loaded."""

    def at_virtual_host(self, principal: Principal, asked: Asked, rules: Rules) -> Verdict:
        """Decides by the rules of the virtual host."""
        own = rules.acl(asked.virtual_host)
        return own.decide(principal, asked) if own else DEFERRED

    def at_broker(self, principal: Principal, asked: Asked, rules: Rules) -> Verdict:
        """Decides by the rules of the broker."""
        own = rules.acl(None)
        return own.decide(principal, asked) if own else DEFERRED
