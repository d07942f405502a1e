"""Which messages get spans: those that their publishers trace, that a rule names, or that chance picks.

Asked for all messages at once that are published alike, so that what can be known of them is known once: a plan is
remembered for each combination of exchange, publisher and queues. Only rules about ids and headers look into messages,
and only into those that everything else of the rule fits. A publisher that traces all of its messages has spans of so
many a second: more would slow down all others. What rules and chance pick is the operator's wish, and has no limit.
"""

from __future__ import annotations

import math
import random
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog

from services.common.clients.outbound import Targets
from services.common.errors import BrokerError
from services.common.memo import Memo
from services.common.message import MessageFormat, format_named
from services.common.telemetry.context import SpanContext
from services.common.telemetry.rules import Rule, matches
from services.common.topology.slots import SlotId
from services.gateway.observe.tracing.allowance import NO_LIMIT, Allowance
from services.gateway.rules import followed
from services.gateway.vocabulary import Kind
from services.rpc import router_pb2, store_pb2

log = structlog.get_logger()

_PLANS, _PLANNED = 10_000, 1 << 20  # that are remembered, and queues in all of them

PARENT, RULE, RATIO = "parent", "rule", "ratio"


class Publisher(NamedTuple):
    """Who publishes; `names` are those that the connection and its user have."""

    virtual_host: str
    names: tuple[str, ...]


class Pick(NamedTuple):
    """A message that gets spans: where it stands among those asked about, what its publisher said, and why."""

    at: int
    parent: SpanContext | None
    reason: str


class Chance:
    """Picks a share of all messages, and does nothing for those that it leaves out."""

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio
        self._skip = self._gap()

    def pick(self, count: int) -> Sequence[int]:
        """Indexes among the next `count` messages."""
        if self._ratio >= 1:
            return range(count)
        picked: list[int] = []
        while self._skip < count:
            picked.append(self._skip)
            self._skip += 1 + self._gap()
        self._skip -= count
        return picked

    def _gap(self) -> int:
        """Messages left out before the next that is picked: geometric."""
        if not 0 < self._ratio < 1:
            return 1 << 62
        return int(math.log(1.0 - random.random()) / math.log1p(-self._ratio))  # noqa: S311 - statistics


@dataclass(slots=True)
class _Plan:
    never: bool = False
    chance: Chance | None = None  # of the rules that fit all of it
    inside: list[tuple[Rule, Chance]] = field(default_factory=list)


class Sampler:
    """`active`: there is more to ask than whether the publisher traces a message."""

    def __init__(
        self, ratio: float, queues: Mapping[SlotId, router_pb2.QueueDefinition], allowance: Allowance = NO_LIMIT
    ) -> None:
        self.active = ratio > 0
        self.untraced = 0
        """Messages that their publishers trace, beyond the allowance."""
        self._allowance = allowance
        self._ratio = ratio
        self._chance = Chance(ratio)
        self._queues = queues
        self._rules: dict[str, Rule] = {}
        self._plans: Memo[tuple[Publisher, str, Targets], _Plan] = Memo(_PLANS, _PLANNED)

    async def follow(self, records: AsyncIterator[store_pb2.Records]) -> None:
        """Applies a watch of the records of kind `tracing_rule`; ends with it."""
        async for rules in followed(records, Rule.from_json, "tracing"):
            self.set_rules(rules)

    def set_rules(self, rules: Iterable[Rule]) -> None:
        """These and no others, from now on."""
        self._rules = {rule.name: rule for rule in rules}
        self._plans.clear()
        self.active = self._ratio > 0 or bool(self._rules)

    def pick(self, publisher: Publisher, kind: Kind, properties: Sequence[bytes], queue_ids: Targets) -> list[Pick]:
        """Those that get spans of messages of a kind that go to the same queues, in their order."""
        key = (publisher, kind.facts.exchange, queue_ids)
        plan = self._plans.get(key) or self._plans.recall(key) or self._make_plan(key)
        if plan.never:
            return []
        message_format = format_named(kind.facts.format)
        reasons = self._reasons(plan, kind, properties, message_format)
        picks = []
        for index in sorted(reasons):
            reason, parent = reasons[index], message_format.trace_context(properties[index])
            # A publisher that decided against it is overruled by rules only.
            if reason == RULE or (parent is None if reason == RATIO else parent is not None and parent.sampled):
                picks.append(Pick(index, parent, reason))
        return picks

    def _reasons(
        self, plan: _Plan, kind: Kind, properties: Sequence[bytes], message_format: MessageFormat
    ) -> dict[int, str]:
        count = len(properties)
        reasons = dict.fromkeys(self._chance.pick(count), RATIO)
        if kind.attributes.sampled:
            allowed = self._allowance.take(count)
            self.untraced += count - allowed
            reasons.update(dict.fromkeys(range(allowed), PARENT))
        if plan.chance:
            reasons.update(dict.fromkeys(plan.chance.pick(count), RULE))
        for rule, chance in plan.inside:
            found = [index for index, each in enumerate(properties) if _fits(rule, message_format, each)]
            if not rule.ratio:
                for index in found:
                    reasons.pop(index, None)
            for at in chance.pick(len(found)):
                reasons[found[at]] = RULE
        return reasons

    def _make_plan(self, key: tuple[Publisher, str, Targets]) -> _Plan:
        publisher, exchange, queue_ids = key
        names = [self._queues[queue_id].name for queue_id in queue_ids if queue_id in self._queues]
        fitting = [
            rule
            for rule in self._rules.values()
            if rule.matches_run(publisher.virtual_host, exchange, names, list(publisher.names))
        ]
        whole = [rule.ratio for rule in fitting if not rule.looks_inside]
        plan = _Plan(never=0 in whole, chance=Chance(max(whole)) if any(whole) else None)
        # Those that forbid come last, so that they have the last word.
        inside = sorted((rule for rule in fitting if rule.looks_inside), key=lambda rule: -rule.ratio)
        plan.inside = [(rule, Chance(rule.ratio)) for rule in inside]
        self._plans.put(key, plan, len(queue_ids))
        return plan


def _fits(rule: Rule, message_format: MessageFormat, properties: bytes) -> bool:
    try:
        if rule.message_id is not None and not matches(rule.message_id, message_format.text(properties, "message-id")):
            return False
        if rule.header is None:
            return True
        headers = message_format.headers(properties)
    except BrokerError:  # not readable: no rule is about it
        return False
    return rule.header in headers and matches(rule.header_value, headers[rule.header])
