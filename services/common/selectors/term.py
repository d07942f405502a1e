"""A part of a selector, compiled, and what can be said of it before there is a message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from services.common.selectors.values import Evaluate, Kind, Value, kind_of


class Equality(NamedTuple):
    """An identifier has a value: whatever else a selector asks, a message without it is not selected."""

    name: str
    value: Value
    kind: Kind
    """1 is not TRUE, though Python has it so."""

    @classmethod
    def of(cls, name: str, value: Value) -> Equality:
        """For a look into an index. Nothing equals what is of no kind, a list or a table: that is one key with NULL."""
        kind = kind_of(value)
        return cls(name, None if kind is Kind.ANY else value, kind)


@dataclass(frozen=True, slots=True)
class Term:
    """`required` is true of every message for which it is true; `name` is an identifier's own, `constant` a literal's.

    `depth` is how many terms lie in each other: to evaluate it takes as many calls. `steps` may be made at each
    character of a text that is looked through.
    """

    evaluate: Evaluate
    kind: Kind
    depth: int = 1
    name: str | None = None
    constant: Value = None
    required: frozenset[Equality] = frozenset()
    steps: int = 0


def literal(value: Value) -> Term:
    """None is NULL."""
    return Term(lambda _: value, kind_of(value), constant=value)


def identifier(name: str) -> Term:
    """What the message says, whatever that is."""
    return Term(lambda look_up: look_up(name), Kind.ANY, name=name)


def combined(
    evaluate: Evaluate, kind: Kind, parts: Sequence[Term], required: frozenset[Equality], steps: int = 0
) -> Term:
    """Of some terms another one, which makes so many steps itself."""
    depth, steps = 1 + max(part.depth for part in parts), steps + sum(part.steps for part in parts)
    return Term(evaluate, kind, depth, required=required, steps=steps)
