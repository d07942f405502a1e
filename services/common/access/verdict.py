"""The answer to a question of access."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum


class Decision(Enum):
    """What one access control decides; DEFERRED: the next one is asked."""

    ALLOWED = "allowed"
    DENIED = "denied"
    DEFERRED = "deferred"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision, and for operators the rule that made it."""

    decision: Decision
    rule: str = ""  # what decided, in one line
    refused: str = ""  # what exactly is refused, where it is not the whole question
    by_key: bool = False  # another routing key may get another decision
    logged: bool = False  # the rule wants it in the log
    of_key: Callable[[str], Verdict] | None = field(default=None, compare=False, repr=False)
    """The verdict for another routing key: quicker than to ask again."""

    @property
    def allowed(self) -> bool:
        """Whether it may be done."""
        return self.decision is Decision.ALLOWED

    def perhaps_by_key(self, by_key: bool) -> Verdict:
        """The same verdict, `by_key` where a control that was asked before looked at the key."""
        return replace(self, by_key=True) if by_key and not self.by_key else self


DEFERRED = Verdict(Decision.DEFERRED)
