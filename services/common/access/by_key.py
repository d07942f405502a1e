"""One question for whatever routing key: where each message has another, all but the key is looked at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from services.common.access.action import Property
from services.common.access.asked import Asked, Principal
from services.common.access.control import NOBODY, AccessControl, Level, levels_of
from services.common.access.verdict import Decision, Verdict

if TYPE_CHECKING:
    from services.common.access.rules import Rules


class ByKey:
    """As `decide`, of questions that differ in their keys alone. It is good until rules change."""

    __slots__ = ("_answers", "_asked", "_levels", "_principal", "_rules")

    def __init__(self, controls: tuple[AccessControl, ...], principal: Principal, asked: Asked, rules: Rules) -> None:
        self._levels = list(levels_of(controls, in_virtual_host=bool(asked.virtual_host)))  # that were not asked yet
        self._answers: list[Callable[[str], Verdict]] = []  # of those that do not always defer
        self._principal, self._asked, self._rules = principal, asked, rules

    def verdict(self, key: str) -> Verdict:
        """ALLOWED or DENIED."""
        for answer in self._answers:
            verdict = answer(key)
            if verdict.decision is not Decision.DEFERRED:
                return verdict
        return self._go_on(key)

    def _go_on(self, key: str) -> Verdict:
        """A level is asked when it is its turn first, and says whether it has to be for every key."""
        while self._levels:
            level = self._levels.pop(0)
            verdict = self._ask(level, key)
            deferred = verdict.decision is Decision.DEFERRED
            if verdict.by_key or not deferred:
                self._answers.append(verdict.of_key or self._answer(level, verdict))
            if not deferred:
                return verdict
        return NOBODY

    def _answer(self, level: Level, verdict: Verdict) -> Callable[[str], Verdict]:
        return (lambda key: self._ask(level, key)) if verdict.by_key else lambda _: verdict

    def _ask(self, level: Level, key: str) -> Verdict:
        its = tuple(each for each in self._asked.properties if each[0] is not Property.ROUTING_KEY)
        asked = replace(self._asked, properties=(*its, (Property.ROUTING_KEY, key)))
        return level(self._principal, asked, self._rules)
