"""Chooses, by look-up, the first rule that fits a routing key, among rules that fit in everything but the key.

Most messages differ from an earlier one, which was decided, in their keys only, and there may be thousands of rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from services.common.access.acl.predicates import is_any
from services.common.access.acl.rule import Rule
from services.common.access.action import Property
from services.common.access.asked import Asked, Principal
from services.common.access.verdict import Decision, Verdict

_STAR = "*"
_MOST = 50_000  # that all remembered choices may have


class Choice:
    """For one user and object: `rules` depend on the key, `last` decides where none of them fits."""

    def __init__(self, rules: Sequence[Rule], last: Verdict) -> None:
        self.size = len(rules)
        self._verdicts = [replace(verdict_of(rule), by_key=True, of_key=self.verdict) for rule in rules]
        self._last = replace(last, by_key=True, of_key=self.verdict) if rules else last
        self._whole: dict[str, int] = {}
        self._beginnings: dict[int, dict[str, int]] = {}  # by length: the beginnings that end with a star
        for at, rule in enumerate(rules):
            self._add(at, {value.strip() for value in rule.properties[Property.ROUTING_KEY]})

    def _add(self, at: int, values: Iterable[str]) -> None:
        for value in [""] if is_any(values) else values:
            if value.endswith(_STAR) or not value:
                beginning = value.removesuffix(_STAR)
                self._beginnings.setdefault(len(beginning), {}).setdefault(beginning, at)
            else:
                self._whole.setdefault(value, at)

    def verdict(self, key: object) -> Verdict:
        """The first rule that fits the key decides; without a key none of them fits."""
        if not self.size or not isinstance(key, str):
            return self._last
        found = [self._whole.get(key)]
        found += [each.get(key[:length]) for length, each in self._beginnings.items()]
        first = min((at for at in found if at is not None), default=None)
        return self._last if first is None else self._verdicts[first]


def verdict_of(rule: Rule) -> Verdict:
    """The verdict of the rule that decides."""
    decision = Decision.ALLOWED if rule.outcome.allows else Decision.DENIED
    return Verdict(decision, f"acl: {rule.text}", logged=rule.outcome.logged)


@dataclass(frozen=True, slots=True)
class _Key:
    """A question without its routing key."""

    principal: Principal
    asked: tuple[object, ...]


class Choices:
    """Choices made lately, for further keys."""

    def __init__(self) -> None:
        self._made: dict[_Key, Choice] = {}
        self._size = 0

    def find(self, principal: Principal, asked: Asked) -> Choice | None:
        """None where no choice was made for the question."""
        return self._made.get(_key(principal, asked)) if self._made else None

    def remember(self, principal: Principal, asked: Asked, choice: Choice) -> None:
        """Keeps a choice that depends on keys; no others, as clients may ask about any name."""
        if not choice.size:
            return
        if self._size + choice.size > _MOST:
            self._made.clear()
            self._size = 0
        self._made[_key(principal, asked)] = choice
        self._size += choice.size


def _key(principal: Principal, asked: Asked) -> _Key:
    its = tuple(each for each in asked.properties if each[0] is not Property.ROUTING_KEY)
    return _Key(principal, (asked.action, asked.kind, asked.name, asked.virtual_host, asked.other, its))
