"""Facts of many messages that differ in their routing keys alone, as one and a column of keys.

Keys that never came before have facts of their own: to write and to read each as bytes took more than all else that is
done with them. Nothing is remembered of them, so what comes again is said in the other way, which remembers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple

from services.common.message.facts import KEY, Facts

_MAKE: Final = partial(tuple.__new__, Facts)


class ByKey(NamedTuple):
    """What they have in common, without a key, and the key of each."""

    facts: Facts
    keys: Sequence[str]


def by_key(table: Sequence[Facts]) -> ByKey | None:
    """None where they differ in anything else."""
    columns = tuple(zip(*table, strict=True))
    if not are_one(columns[:KEY] + columns[KEY + 1 :]):
        return None
    return ByKey(table[0]._replace(routing_key=""), columns[KEY])


def with_keys(facts: Facts, keys: Iterable[str]) -> list[Facts]:
    """The same with each of these keys."""
    columns: list[Iterable[Any]] = list(map(repeat, facts))
    columns[KEY] = keys
    return list(map(_MAKE, zip(*columns, strict=False)))


def are_one(columns: Iterable[Sequence[Any]]) -> bool:
    """Whether each has one value."""
    return all(column.count(column[0]) == len(column) for column in columns)
