"""What rules have captured: each gateway keeps a record of kind `capture_taken` for each rule, whoever lives on.

The room of a rule is everybody's. So a gateway claims bytes on record before it takes them: what the others have left,
if nobody has claimed anything since it read that; else it reads again. A rule never has more than its limit, and what
several want at once one of them gets.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, Field

from services.common.capture.rules import LONGEST_SECONDS, Rule

RECORD_KIND = "capture_taken"


class Cost(BaseModel):
    """What one rule has cost."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    messages: int = Field(0, description="that were captured")
    bytes: int = Field(0, description="of what was kept of them")
    left_out: int = Field(0, description="messages that it matched, and there was no room for by its limit or the bus")

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            messages=self.messages + other.messages,
            bytes=self.bytes + other.bytes,
            left_out=self.left_out + other.left_out,
        )


class Account(BaseModel):
    """One gateway's, of one rule; the record's key is `key`, its value this as JSON."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instance: str
    rule: str
    made_ms: int  # of the rule: one that replaces another of its name is another
    cost: Cost = Cost()
    claimed: int = 0  # bytes: those of `cost`, and what it may take besides

    @property
    def key(self) -> str:
        """Nobody else's, and of no other rule."""
        return f"{self.made_ms} {self.instance} {self.rule}"

    def is_of(self, rule: Rule) -> bool:
        """Whether it is about that one."""
        return (self.rule, self.made_ms) == (rule.name, rule.made_ms)

    def is_over(self, now_ms: int) -> bool:
        """Whether nobody can take anything for its rule any more."""
        return now_ms >= self.made_ms + LONGEST_SECONDS * 1000


def taken_by_others(rule: Rule, instance: str, accounts: Iterable[Account]) -> int:
    """Bytes of a rule's limit that are not for `instance`: also of gateways that are gone."""
    others = (account for account in accounts if account.instance != instance and account.is_of(rule))
    return sum(max(account.claimed, account.cost.bytes) for account in others)


class Captured(BaseModel):
    """A rule with what it has cost so far, in all gateways."""

    model_config = ConfigDict(frozen=True)

    rule: Rule
    cost: Cost
    ended: bool = Field(description="its time is over")


def captured(rules: Iterable[Rule], accounts: Iterable[Account], now_ms: int) -> list[Captured]:
    """Each rule with its cost, by name."""
    told = list(accounts)
    return [
        Captured(rule=rule, cost=_sum(rule, told), ended=now_ms >= rule.until_ms)
        for rule in sorted(rules, key=lambda rule: rule.name)
    ]


def _sum(rule: Rule, accounts: Iterable[Account]) -> Cost:
    return sum((account.cost for account in accounts if account.is_of(rule)), Cost())
