"""Answers one question for any routing key: what does not depend on the key is decided once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from services.common.access.action import Property
from services.common.access.asked import Asked, Principal
from services.common.access.control import NOBODY, AccessControl, Level, levels_of
from services.common.access.verdict import Decision, Verdict

if TYPE_CHECKING:
    from services.common.access.rules import Rules


class ByKey:
    """As `decide`, for questions that differ in their keys alone. Valid until rules change."""

    __slots__ = ("_answers", "_asked", "_levels", "_principal", "_rules")

    def __init__(self, controls: tuple[AccessControl, ...], principal: Principal, asked: Asked, rules: Rules) -> None:
        self._levels = list(levels_of(controls, in_virtual_host=bool(asked.virtual_host)))  # not asked yet
        self._answers: list[Callable[[str], Verdict]] = []  # of those that do not defer for every key
        self._principal, self._asked, self._rules = principal, asked, rules

    def verdict(self, key: str) -> Verdict:
        """ALLOWED or DENIED."""
        for answer in self._answers:
            verdict = answer(key)
            if verdict.decision is not Decision.DEFERRED:
                return verdict
        return self._go_on(key)

    def _go_on(self, key: str) -> Verdict:
        """Asks further levels for the first time, and notes whether each must be asked for every key."""
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
        asked = self._asked._replace(properties=(*its, (Property.ROUTING_KEY, key)))
        return level(self._principal, asked, self._rules)
