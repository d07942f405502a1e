"""What rules have captured, as each gateway says in transient records of kind `capture_cost`."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, Field

from services.common.capture.rules import Rule

RECORD_KIND = "capture_cost"


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
    """One gateway; the record's key is the instance, its value this as JSON. Rules are told apart by when made, too."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instance: str
    costs: dict[str, Cost]

    @staticmethod
    def key_of(rule: Rule) -> str:
        """Of a rule, in `costs`."""
        return f"{rule.made_ms} {rule.name}"


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
    key = Account.key_of(rule)
    return sum((account.costs.get(key, Cost()) for account in accounts), Cost())
