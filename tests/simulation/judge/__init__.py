"""Judges histories: which promises were broken. README.md says what is promised, and what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.simulation.history import History
from tests.simulation.judge import (
    alone,
    browsed,
    grouped,
    held_back,
    kept_long,
    linked,
    lost,
    modified,
    once,
    order,
    purged,
    quiet,
    ranked,
    returned,
    seen,
    subscribed,
    timely,
    told,
    whole,
)
from tests.simulation.judge.facts import Facts, Violation, first
from tests.simulation.plan import Plan

RULES: tuple[Callable[[Facts], Iterator[Violation]], ...] = (
    quiet.stuck,
    lost.lost,
    seen.invented,
    seen.unwanted,
    seen.before,
    seen.local,
    seen.seen_again,
    returned.had,
    purged.brought_back,
    seen.held_by_two,
    seen.doubled,
    seen.twice,
    seen.marked,
    order.disordered,
    ranked.misplaced,
    ranked.doubled,
    once.taken_twice,
    timely.early,
    timely.outlived,
    timely.overdue,
    whole.torn,
    alone.touched,
    alone.shared,
    alone.two_active,
    alone.two_served,
    browsed.again,
    browsed.unseen,
    grouped.held_by_one,
    grouped.owned_by_one,
    held_back.taken,
    linked.left_behind,
    linked.given_up,
    linked.miscounted,
    modified.refused,
    modified.unsaid,
    modified.unheard,
    subscribed.kept,
    subscribed.stolen,
    kept_long.kept,
    kept_long.cancelled,
    quiet.blamed,
    quiet.breached,
    quiet.miscounted,
    quiet.unreturned,
    quiet.unfreed,
    told.untold,
    told.misled,
)


def judge(plan: Plan, history: History) -> list[Violation]:
    """Empty when every promise was kept."""
    facts = Facts(plan, history)
    return [violation for rule in RULES for violation in first(rule(facts))]


__all__ = ["RULES", "Facts", "Violation", "judge"]
