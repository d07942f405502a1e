"""Expressions as functions of an object. What has no value is unknown, and so is what is compared with it."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from lark import Lark, Token, Transformer
from lark.exceptions import LarkError, UnexpectedInput, VisitError

from services.common.selectors.like import matcher
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.query.functions import FUNCTIONS, Function
from services.mgmt.model.query.grammar import GRAMMAR

Look = Callable[[ConfiguredObject, str], Any]
Value = Callable[[ConfiguredObject], Any]

LONGEST: Final = 8192
_LONGEST_NUMBER: Final = 300  # characters
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
_CALCULATE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod,
}  # fmt: skip
_PARSER: Final = Lark(GRAMMAR, parser="lalr", start=["expression", "columns", "orders"], maybe_placeholders=True)


class NotParsed(IllegalConfiguration):
    """What is no expression: the text itself is wrong, whatever it is held against."""


class Column(NamedTuple):
    """Of a result."""

    header: str
    value: Value


class Order(NamedTuple):
    """What it is sorted by; `column`: the number of one of the result's, from 1 on."""

    value: Value
    descending: bool
    column: int | None


class Compiler:
    """For objects of one category; `look` tells an attribute or a statistic; `now` is the time."""

    def __init__(self, kind: type[ConfiguredObject], look: Look, now: int) -> None:
        self._kind = kind
        self._look = look
        self._now = now

    def condition(self, text: str) -> Value:
        """True where it applies. Raises NotParsed."""
        found: Value = self._compiled(text, "expression", "where")
        return found

    def columns(self, text: str) -> list[Column]:
        """Raises NotParsed."""
        found: list[Column] = self._compiled(text, "columns", "select")
        return found

    def orders(self, text: str) -> list[Order]:
        """Raises NotParsed."""
        found: list[Order] = self._compiled(text, "orders", "orderBy")
        return found

    def _compiled(self, text: str, start: str, what: str) -> Any:  # noqa: ANN401 - each start its own
        if len(text) > LONGEST:
            raise NotParsed(f"{what}: longer than {LONGEST} characters")
        try:
            return _Functions(text, self._kind, self._look, self._now).transform(_PARSER.parse(text, start=start))
        except UnexpectedInput as error:
            raise NotParsed(f"{what}: not understood at character {error.column}: {_shown(text, error)}") from None
        except VisitError as error:
            if isinstance(error.orig_exc, IllegalConfiguration):
                raise error.orig_exc from None
            raise NotParsed(f"{what}: {error.orig_exc}") from None
        except (LarkError, RecursionError):
            raise NotParsed(f"{what}: not understood") from None


def _shown(text: str, error: UnexpectedInput) -> str:
    at = max((error.column or 1) - 1, 0)
    return repr(text[at : at + 20]) if at < len(text) else "it ends there"


class _Functions(Transformer[Token, Any]):
    """One method for each rule of the grammar."""

    def __init__(self, text: str, kind: type[ConfiguredObject], look: Look, now: int) -> None:
        super().__init__()
        self._text = text
        self._kind = kind
        self._look = look
        self._now = now

    def either(self, parts: list[Value]) -> Value:
        left, right = parts
        return lambda found: _either(_truth(left(found)), lambda: _truth(right(found)))

    def both(self, parts: list[Value]) -> Value:
        left, right = parts
        return lambda found: _both(_truth(left(found)), lambda: _truth(right(found)))

    def negated(self, parts: list[Value]) -> Value:
        [value] = parts
        return lambda found: _negated(_truth(value(found)))

    def compared(self, parts: list[Any]) -> Value:
        left, sign, right = parts
        return lambda found: _compared(left(found), str(sign), right(found))

    def is_null(self, parts: list[Value]) -> Value:
        [value] = parts
        return lambda found: value(found) is None

    def is_not_null(self, parts: list[Value]) -> Value:
        [value] = parts
        return lambda found: value(found) is not None

    def like(self, parts: list[Any]) -> Value:
        value, pattern, escape = parts
        return _like(value, _unquoted(pattern), _unquoted(escape) if escape else "")

    def not_like(self, parts: list[Any]) -> Value:
        fits = self.like(parts)
        return lambda found: _negated(fits(found))

    def between(self, parts: list[Value]) -> Value:
        value, least, most = parts
        return lambda found: _between(value(found), least(found), lambda: most(found))

    def not_between(self, parts: list[Value]) -> Value:
        within = self.between(parts)
        return lambda found: _negated(within(found))

    def among(self, parts: list[Any]) -> Value:
        value, others = parts
        return lambda found: _among(value(found), [each(found) for each in others])

    def not_among(self, parts: list[Any]) -> Value:
        among = self.among(parts)
        return lambda found: _negated(among(found))

    def arithmetic(self, parts: list[Any]) -> Value:
        left, sign, right = parts
        return lambda found: _calculated(left(found), str(sign), right(found))

    def minus(self, parts: list[Value]) -> Value:
        [value] = parts
        return lambda found: _calculated(0, "-", value(found))

    def number(self, parts: list[Token]) -> Value:
        text = str(parts[0])
        value = math.inf if len(text) > _LONGEST_NUMBER else int(text) if text.isdigit() else float(text)
        if math.isinf(value):
            raise NotParsed(f"{text[:20]}…: too large a number")
        return lambda _: value

    def string(self, parts: list[Token]) -> Value:
        text = _unquoted(parts[0])
        return lambda _: text

    def true(self, _parts: list[Token]) -> Value:
        return lambda _: True

    def false(self, _parts: list[Token]) -> Value:
        return lambda _: False

    def null(self, _parts: list[Token]) -> Value:
        return lambda _: None

    def arguments(self, parts: list[Value]) -> list[Value]:
        return parts

    def function(self, parts: list[Any]) -> Value:
        name, values = str(parts[0]).lower(), parts[1] or []
        function = Function(0, 0, lambda: self._now) if name == "now" else FUNCTIONS.get(name)
        if function is None:
            raise NotParsed(f"there is no function {name}; there are now, {', '.join(FUNCTIONS)}")
        if not function.least <= len(values) <= function.most:
            raise NotParsed(f"{name}: {function.least} to {function.most} arguments are wanted, not {len(values)}")
        return lambda found: function.call(*(each(found) for each in values))

    def path(self, names: list[Token]) -> Value:
        """$parent goes up; a name below an attribute that is a map is a key of it."""
        above = next((number for number, name in enumerate(names) if name != "$parent"), len(names))
        name, keys = str(names[above]) if above < len(names) else "name", [str(each) for each in names[above + 1 :]]
        if not above and name not in self._kind.attributes and name not in self._kind.statistics:
            raise NotParsed(f"{self._kind.category} has neither an attribute nor a statistic '{name}'")
        return lambda found: _at(self._look, found, above, name, keys)

    def column(self, parts: list[Any]) -> tuple[Value, str | None]:
        value, alias = parts
        return value, str(alias) if alias else None

    def columns(self, parts: list[tuple[Value, str | None]]) -> list[Column]:
        texts = _apart(self._text)
        return [Column(alias or text, value) for (value, alias), text in zip(parts, texts, strict=True)]

    def order(self, parts: list[Any]) -> tuple[Value, bool]:
        value, direction = parts
        return value, bool(direction) and str(direction).upper() == "DESC"

    def orders(self, parts: list[tuple[Value, bool]]) -> list[Order]:
        numbers = [re.fullmatch(r"(\d+)(\s+(?:asc|desc))?", text, re.IGNORECASE) for text in _apart(self._text)]
        return [
            Order(value, descending, int(number[1]) if number else None)
            for (value, descending), number in zip(parts, numbers, strict=True)
        ]


def _apart(text: str) -> list[str]:
    """At commas that are in no parentheses and in no text."""
    parts, depth, quoted, start = [], 0, False, 0
    for at, character in enumerate(text):
        quoted ^= character == "'"
        depth += 0 if quoted else {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth and not quoted:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def _unquoted(text: str) -> str:
    return str(text)[1:-1].replace("''", "'")


def _at(look: Look, found: ConfiguredObject, above: int, name: str, keys: list[str]) -> Any:  # noqa: ANN401 - each its own
    at: ConfiguredObject | None = found
    for _ in range(above):
        at = at.parent if at else None
    value = look(at, name) if at else None
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _truth(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def _either(left: bool | None, right: Callable[[], bool | None]) -> bool | None:
    if left:
        return True
    other = right()
    return True if other else None if left is None or other is None else False


def _both(left: bool | None, right: Callable[[], bool | None]) -> bool | None:
    if left is False:
        return False
    other = right()
    return False if other is False else None if left is None or other is None else True


def _compared(left: Any, sign: str, right: Any) -> bool | None:  # noqa: ANN401 - whatever it is
    """Unknown where one is, or where they are not of one kind."""
    if left is None or right is None:
        return None
    if _kind(left) is not _kind(right):
        return None
    try:
        return _COMPARE[sign](left, right)
    except TypeError:
        return None


def _between(value: Any, least: Any, most: Callable[[], Any]) -> bool | None:  # noqa: ANN401 - whatever it is
    """`value` once: asked for twice, each between in another doubles what has to be done."""
    return _both(_compared(value, ">=", least), lambda: _compared(value, "<=", most()))


def _kind(value: object) -> type:
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def _among(value: Any, others: list[Any]) -> bool | None:  # noqa: ANN401 - whatever it is
    return None if value is None else any(_compared(value, "=", other) for other in others)


def _calculated(left: Any, sign: str, right: Any) -> Any:  # noqa: ANN401 - a number, or None
    if left is None or right is None:
        return None
    if _kind(left) is not float or _kind(right) is not float:
        raise IllegalConfiguration(f"numbers are wanted on both sides of {sign}, not {left!r} and {right!r}")
    try:
        result = _CALCULATE[sign](left, right)
        return result if math.isfinite(result) else None
    except (ZeroDivisionError, OverflowError):
        return None


def _like(value: Value, pattern: str, escape: str) -> Value:
    """% is any text, _ any character."""
    if len(escape) > 1:
        raise NotParsed(f"ESCAPE: one character is wanted, not {escape!r}")
    fits = matcher(pattern, escape)

    def like(found: ConfiguredObject) -> bool | None:
        text = value(found)
        return fits(text) if isinstance(text, str) else None

    return like
