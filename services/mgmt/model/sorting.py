"""The order of thousands of values, in steps that are short each. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

from services.mgmt.model.steps import Steps

AT_ONCE: Final = 2000
"""Values that are sorted in a step: of numbers, or texts, that takes a millisecond."""


def places(values: Sequence[Any], *, descending: bool = False) -> Steps[list[int]]:
    """Where each of them is in order: nothing before numbers, those before texts; of equal ones the first is first."""
    if set(map(type, values)) in ({int}, {str}):  # as most columns are
        return (yield from _sorted(list(range(len(values))), values, descending=descending))
    ranks, keys = defaultdict[int, list[int]](list), list[Any]()
    for place, value in enumerate(values):
        rank, key = _ranked(value)
        ranks[rank].append(place)
        keys.append(key)
        if not len(keys) % AT_ONCE:
            yield
    found = list[int]()
    for rank in sorted(ranks, reverse=descending):
        found += yield from _sorted(ranks[rank], keys, descending=descending)
    return found


def as_text(value: object) -> str:
    """As a filter of a URL writes it."""
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _ranked(value: object) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    return (1, value) if isinstance(value, int | float) else (2, as_text(value))


def _sorted(wanted: list[int], keys: Sequence[Any], *, descending: bool) -> Steps[list[int]]:
    """A part in each step, then parts together: what is in order already is only gone through."""
    runs = list[list[int]]()
    for start in range(0, len(wanted), AT_ONCE):
        runs.append(sorted(wanted[start : start + AT_ONCE], key=keys.__getitem__, reverse=descending))
        yield
    while len(runs) > 1:
        pairs, runs = [runs[at : at + 2] for at in range(0, len(runs), 2)], []
        for pair in pairs:
            runs.append((yield from _merged(pair, keys, descending=descending)))
    return runs[0] if runs else []


def _merged(pair: Sequence[list[int]], keys: Sequence[Any], *, descending: bool) -> Steps[list[int]]:
    """One or two runs as one, a slice in each step."""
    one, other = (*pair, [])[:2]
    found, first, second = list[int](), 0, 0
    while (begin := len(found)) < len(one) + len(other):
        count = min(AT_ONCE, len(one) + len(other) - begin)
        end = _of_the_one(one[first : first + count], other[second : second + count], count, keys, descending) + first
        its = chain(one[first:end], other[second : second + count - (end - first)])
        found += sorted(its, key=keys.__getitem__, reverse=descending)
        first, second = end, second + count - (end - first)
        yield
    return found


def _of_the_one(one: list[int], other: list[int], count: int, keys: Sequence[Any], descending: bool) -> int:
    """How many of the first `count` of both, in order, are of the one; of equal ones it has the first."""
    least, most = max(0, count - len(other)), min(count, len(one))
    while least < most:
        middle = (least + most) // 2
        mine, its = keys[one[middle]], keys[other[count - middle - 1]]
        if (mine < its) if descending else (its < mine):
            most = middle
        else:
            least = middle + 1
    return least
