"""ACL files, in the grammar of Broker-J.

    ACL {ALLOW|ALLOW-LOG|DENY|DENY-LOG} {user|group|ALL} {operation|ALL} [object|ALL] [property=value | =[value, …]] …
    CONFIG DEFAULTDEFER=TRUE | DEFAULTALLOW=TRUE | DEFAULTDENY=TRUE

A number before ACL is the rule's place; a rule without one comes ten after the last. Faults have Broker-J's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TypeVar

from services.common.access.acl.predicates import IGNORED, UNKNOWN, Values, property_named
from services.common.access.acl.rule import ALL, SUPPORTED, Outcome, Rule
from services.common.access.acl.rule_set import RuleSet
from services.common.access.acl.tokens import Line, lines
from services.common.access.action import Action, Kind, Property
from services.common.access.verdict import Decision
from services.common.errors import SyntaxFault

_STEP = 10
_LEAST = 3  # tokens of a rule, and of a default
_OWNER = "OWNER"
_OPEN, _CLOSE, _COMMA = "[", "]", ","
_DEFAULTS = {
    "defaultallow": Decision.ALLOWED,
    "defaultdefer": Decision.DEFERRED,
    "defaultdeny": Decision.DENIED,
}

E = TypeVar("E", bound=Enum)


def _named(kinds: type[E]) -> dict[str, E]:
    return {spelt: each for each in kinds for spelt in (each.value, each.value.replace("-", "_"))}


_OUTCOMES = _named(Outcome)
_ACTIONS = {name: each for name, each in _named(Action).items() if each is not Action.LOOK}
_KINDS = _named(Kind)


def parse(text: str) -> RuleSet:
    """Raises SyntaxFault that names the line."""
    reading = _Reading()
    for line in lines(text):
        try:
            reading.take(line)
        except SyntaxFault as fault:
            where = f"line {line.number}"
            raise SyntaxFault(fault.text if where in fault.text else f"{fault.text} at {where}") from None
    return RuleSet(tuple(reading.rules[place] for place in sorted(reading.rules)), reading.default)


class _Reading:
    """The rules by their places, as far as the file is read."""

    def __init__(self) -> None:
        self.rules: dict[int, Rule] = {}
        self.default = Decision.DENIED
        self._last = -_STEP  # the place of the last rule

    def take(self, line: Line) -> None:
        first, *rest = line.tokens
        if not rest:
            raise SyntaxFault("Not enough tokens")
        if re.fullmatch(r"[0-9]+", first):
            self._numbered(int(first), rest)
        elif first.upper() == "ACL":
            self._add(self._last + _STEP, rest)
        elif first.upper() == "CONFIG":
            self._configure(rest)
        elif first.upper() == "GROUP":
            raise SyntaxFault(
                f"GROUP keyword not supported at line {line.number}. Groups should defined via a Group Provider, not in"
                " the ACL file."
            )
        else:
            raise SyntaxFault(f"Unrecognised initial token '{first}'")

    def _numbered(self, number: int, tokens: list[str]) -> None:
        kind, *rest = tokens
        if kind.upper() != "ACL":
            raise SyntaxFault(f"Number not allowed before '{kind}'")
        if number in self.rules:
            raise SyntaxFault("Invalid rule number")
        self._add(number, rest)

    def _add(self, place: int, tokens: list[str]) -> None:
        if len(tokens) < _LEAST:
            raise SyntaxFault("Not enough data for an acl")
        self.rules[place] = _rule(tokens)
        self._last = max(self._last, place)

    def _configure(self, tokens: list[str]) -> None:
        if len(tokens) < _LEAST:
            raise SyntaxFault("Not enough data for config")
        for name, values in _pairs(iter(tokens)):
            if len(values) != 1:
                raise SyntaxFault(f"one value is wanted for {name}")
            if "".join(values).lower() == "true":
                self.default = _DEFAULTS.get(name.lower(), self.default)


def _rule(tokens: list[str]) -> Rule:
    outcome, identity, action, *rest = tokens
    if identity.upper() == _OWNER:
        raise SyntaxFault("OWNER is not supported: the broker does not record who created an object")
    kind, *properties = rest or [ALL]
    made = Rule(
        outcome=_one_of(_OUTCOMES, outcome, "permission"),
        identity=identity,
        action=_one_of(_ACTIONS, action, "operation") if action.upper() != ALL else None,
        kind=_one_of(_KINDS, kind, "object type") if kind.upper() != ALL else None,
        properties=_properties(properties),
        text=" ".join(("ACL", *map(_quoted, tokens))).replace(" = ", "=").replace(" , ", ", "),
    )
    if made.action and made.kind and made.action not in SUPPORTED[made.kind]:
        raise SyntaxFault(f"Operation {made.action.value} is not allowed for {made.kind.value}")
    return made


def _properties(tokens: list[str]) -> Mapping[Property, Values]:
    found: dict[Property, Values] = {}
    for name, values in _pairs(iter(tokens)):
        wanted = property_named(name)
        if wanted in UNKNOWN:
            raise SyntaxFault(f"{name} is not supported: the broker does not record it")
        if wanted not in IGNORED:
            found[wanted] = found.get(wanted, frozenset()) | values
    if {Property.FROM_HOSTNAME, Property.FROM_NETWORK} <= found.keys():
        raise SyntaxFault("from_hostname, or from_network: not both")
    return found


def _pairs(tokens: Iterator[str]) -> Iterator[tuple[str, Values]]:
    for name in tokens:
        yield name, _value(tokens)


def _value(tokens: Iterator[str]) -> Values:
    if (equals := next(tokens, None)) is None:
        raise SyntaxFault("Incomplete property (key only)")
    if equals != "=":
        raise SyntaxFault("Incomplete property (no equals)")
    if (value := next(tokens, None)) is None:
        raise SyntaxFault("Incomplete property (no value)")
    return frozenset(_listed(tokens)) if value == _OPEN else frozenset({value})


def _listed(tokens: Iterator[str]) -> Iterator[str]:
    for token in tokens:
        if token == _CLOSE:
            return
        if token != _COMMA:
            yield token
    raise SyntaxFault("Incomplete property (no close bracket)")


def _one_of(kinds: Mapping[str, E], name: str, what: str) -> E:
    if (found := kinds.get(name.upper())) is None:
        raise SyntaxFault(f"Not a valid {what}: {name}")
    return found


_PLAIN = re.compile(r"[A-Za-z0-9_.*@:+=\[\],-]+")


def _quoted(token: str) -> str:
    return token if _PLAIN.fullmatch(token) else f'"{token}"'
