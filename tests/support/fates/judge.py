"""Holds what is said against the truth: of each message by look-ups, and of all together by the audit."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from tests.support.fates.allowed import LOST_TRANSIENT, UNKNOWN, allowed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.fates.told import Fate, Said
    from tests.support.fates.truth import Copy, Truth

SHOWN = 20


def wrongs(truth: Truth, told: Fate) -> list[str]:
    """Everything that is said and not true, and what should be said and is not; the first ones in words."""
    found = [wrong for name in truth.messages for wrong in _of_message(truth, name, told.of(name))]
    return [f"{len(found)} in all", *found[:SHOWN]] if found else []


def _of_message(truth: Truth, name: str, said: list[Said]) -> Iterator[str]:
    of_copy: defaultdict[Copy, list[Said]] = defaultdict(list)
    for one in said:
        of_copy[name, one.queue].append(one)
    for copy in sorted(set(truth.copies_of(name)) | of_copy.keys()):
        may_be = allowed(truth, copy)
        for one in of_copy[copy]:
            if one.fate not in may_be or (one.fate == UNKNOWN and not one.gap):
                yield f"{truth.messages[name]}: {one}, though it can only be {sorted(may_be)}"
        # Whose beginning is in a gap is not found by its name; nor is what a copy became, if that fell into one.
        if not of_copy[copy] and not any(_has_more(one) for one in said):
            yield f"{truth.messages[name]}: nothing of {copy[1]}, only {said}"


def _has_more(said: Said) -> bool:
    return said.fate in {"expired", "rejected"} or bool(said.fate == UNKNOWN and said.gap)


def disagreements(told: Fate, fates: list[Any]) -> dict[tuple[str, str], tuple[int, int]]:
    """Where look-ups and the audit count differently, by queue and fate. `fates` are rows of the audit's table."""
    by_look_up = Counter((one.queue, one.fate) for one in told.everything())
    audited: Counter[tuple[str, str]] = Counter()
    for row in fates:
        audited[row["queue"], row["fate"]] += row["messages"]
    keys = by_look_up.keys() | audited.keys()
    return {key: (by_look_up[key], audited[key]) for key in sorted(keys) if by_look_up[key] != audited[key]}


def lost(truth: Truth, told: Fate) -> set[Copy]:
    """Transient messages that are said to be."""
    return {(name, one.queue) for name in truth.messages for one in told.of(name) if one.fate == LOST_TRANSIENT}
