"""From the grammar's rules to terms: one method for each rule, called as the parser comes to it.

What is wrong whatever a message says is an error here: a number where a truth value has to be, text that is more than
something (JMS 3.8.1.1).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

from lark import Transformer, v_args

from services.common.selectors import calculating, comparing, like, logic
from services.common.selectors.term import Equality, Term, combined, identifier, literal
from services.common.selectors.values import Evaluate, Kind

_DEEPEST: Final = 200  # terms in each other: a message must not take all of the stack
_LARGEST: Final = 1 << 63
_NOTHING: Final[frozenset[Equality]] = frozenset()
_TEXT: Final = re.compile(r"'(?:[^']|'')*'")


class Mistaken(ValueError):
    """What is wrong with a selector, in words for whoever wrote it."""


def _need(kinds: set[Kind], sign: str, *terms: Term) -> None:
    """Raises Mistaken unless each is of these, or cannot be said yet."""
    for term in terms:
        if term.kind not in kinds | {Kind.ANY}:
            raise Mistaken(f"{sign} wants {' or '.join(sorted(kind.value for kind in kinds))}, not {term.kind.value}")


def _made(
    evaluate: Evaluate, kind: Kind, *parts: Term, required: Iterable[Equality] = _NOTHING, steps: int = 0
) -> Term:
    term = combined(evaluate, kind, parts, frozenset(required), steps)
    if term.depth > _DEEPEST:
        raise Mistaken(f"more than {_DEEPEST} terms lie in each other")
    return term


def _unquoted(token: str) -> str:
    """Without the quotes around it; doubled ones within are single."""
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)


@v_args(inline=True)
class Compiler(Transformer[str, Term]):
    """See the module."""

    # -------------------------------------------------------------- logic

    def either(self, *terms: Term) -> Term:
        _need({Kind.TRUTH}, "OR", *terms)
        shared = frozenset.intersection(*(term.required for term in terms))
        return _made(logic.either([term.evaluate for term in terms]), Kind.TRUTH, *terms, required=shared)

    def both(self, *terms: Term) -> Term:
        _need({Kind.TRUTH}, "AND", *terms)
        every = frozenset.union(*(term.required for term in terms))
        return _made(logic.both([term.evaluate for term in terms]), Kind.TRUTH, *terms, required=every)

    def negated(self, term: Term) -> Term:
        _need({Kind.TRUTH}, "NOT", term)
        return _made(logic.negated(term.evaluate), Kind.TRUTH, term)

    # -------------------------------------------------------------- conditions

    def compared(self, left: Term, sign: str, right: Term) -> Term:
        if sign in comparing.ORDERS:
            _need({Kind.NUMBER}, sign, left, right)
        elif Kind.ANY not in {left.kind, right.kind}:
            _need({left.kind}, sign, right)
        for one, other in ((left, right), (right, left)):
            if one.name is not None and other.constant is not None and (sign in comparing.EQUALITIES or one is left):
                return self._compared_to(one.name, sign, other)
        return _made(comparing.compared(left.evaluate, sign, right.evaluate), Kind.TRUTH, left, right)

    def _compared_to(self, name: str, sign: str, constant: Term) -> Term:
        required = {Equality.of(name, constant.constant)} if sign == "=" else _NOTHING
        evaluate = comparing.compared_to(name, sign, constant.constant)
        return _made(evaluate, Kind.TRUTH, constant, required=required)

    def is_null(self, term: Term) -> Term:
        return _made(logic.is_null(term.evaluate), Kind.TRUTH, term)

    def is_not_null(self, term: Term) -> Term:
        return _made(logic.is_not_null(term.evaluate), Kind.TRUTH, term)

    def between(self, value: Term, least: Term, most: Term) -> Term:
        _need({Kind.NUMBER}, "BETWEEN", value, least, most)
        evaluate = comparing.between(value.evaluate, least.evaluate, most.evaluate)
        return _made(evaluate, Kind.TRUTH, value, least, most)

    def not_between(self, value: Term, least: Term, most: Term) -> Term:
        return self.negated(self.between(value, least, most))

    def among(self, value: Term, *texts: str) -> Term:
        _need({Kind.TEXT}, "IN", value)
        listed = _TEXT.findall(texts[0]) if texts[0].startswith("(") else texts
        return _made(comparing.among(value.evaluate, frozenset(map(_unquoted, listed))), Kind.TRUTH, value)

    def not_among(self, value: Term, *texts: str) -> Term:
        return self.negated(self.among(value, *texts))

    def like(self, value: Term, pattern: str, escape: str | None) -> Term:
        _need({Kind.TEXT}, "LIKE", value)
        by = _unquoted(escape) if escape else ""
        if escape and len(by) != 1:
            raise Mistaken(f"ESCAPE wants one character, not {escape}")
        its = _unquoted(pattern)
        return _made(like.like(value.evaluate, its, by), Kind.TRUTH, value, steps=like.steps(its, by))

    def not_like(self, value: Term, pattern: str, escape: str | None) -> Term:
        return self.negated(self.like(value, pattern, escape))

    # -------------------------------------------------------------- arithmetic

    def calculated(self, left: Term, sign: str, right: Term) -> Term:
        _need({Kind.NUMBER}, sign, left, right)
        return _made(calculating.calculated(left.evaluate, sign, right.evaluate), Kind.NUMBER, left, right)

    def signed(self, sign: str, term: Term) -> Term:
        _need({Kind.NUMBER}, sign, term)
        if term.constant is not None:
            return literal(-term.constant if sign == "-" else term.constant)
        evaluate = calculating.opposite(term.evaluate) if sign == "-" else calculating.same(term.evaluate)
        return _made(evaluate, Kind.NUMBER, term)

    # -------------------------------------------------------------- literals and identifiers

    def text(self, token: str) -> Term:
        return literal(_unquoted(token))

    def exact(self, token: str) -> Term:
        return _whole(token, 0)

    def octal(self, token: str) -> Term:
        return _whole(token, 8)

    def approximate(self, token: str) -> Term:
        value = float(token.rstrip("dfDF"))
        if math.isinf(value):
            raise Mistaken(f"{token} is too large for a number")
        return literal(value)

    def true(self) -> Term:
        return literal(True)

    def false(self) -> Term:
        return literal(False)

    def null(self) -> Term:
        return literal(None)

    def identifier(self, token: str) -> Term:
        return identifier(str(token))

    def quoted(self, token: str) -> Term:
        return identifier(_unquoted(token))


def _whole(token: str, base: int) -> Term:
    """One of 64 bits, with the sign that it may have before it."""
    digits = token.rstrip("lL")
    value = int(digits, base) if len(digits) <= len(oct(_LARGEST)) else _LARGEST + 1
    if value > _LARGEST:
        raise Mistaken(f"{token} is too large for a whole number")
    return literal(value)
