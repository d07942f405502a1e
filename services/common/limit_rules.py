"""Broker-J's connection limits, of users and groups, in the grammar of its files. Pure.

    CLT {user|group|ALL} [BLOCK] [port={name|ALL}] [connection_limit=N] [connection_frequency_limit=N[/period]]
    CONFIG default_frequency_period=60000

A period is `second`, `minute` or `hour`, or of ISO 8601 without its PT, as `1m30s`; `m` is one minute. Of several rules
for one user the tightest counts. A user's own rules come before its groups', and these before those for ALL. A negative
number is no limit. `log_all` is read and ignored: the log has every connection.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from services.common.access.acl.tokens import Line, lines
from services.common.errors import SyntaxFault

RECORD_KIND: Final = "connection_limits"
"""Kind of the broker's record, and of a virtual host's; see `key_of`."""
LONGEST: Final = 1 << 20
"""Characters that rules may have."""
_ALL: Final = "all"
_MOST: Final = 1_000_000
_USUAL_PERIOD: Final = 60.0  # seconds
_WORDS: Final = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
_PERIOD: Final = re.compile(r"(?:PT)?(?:(\d{0,6})h)?(?:(\d{0,6})m)?(?:(\d{0,6})s)?", re.IGNORECASE)
_PARTS: Final = (3600.0, 60.0, 1.0)


@dataclass(frozen=True, slots=True)
class Bound:
    """Limits of one user's connections: how many at once, and how many in each period (seconds)."""

    blocked: bool = False
    count: int | None = None
    frequencies: Mapping[float, int] = field(default_factory=dict)

    @property
    def is_none(self) -> bool:
        return not (self.blocked or self.frequencies) and self.count is None

    def and_(self, other: Bound) -> Bound:
        """The tighter of both."""
        counts = [each for each in (self.count, other.count) if each is not None]
        periods = {*self.frequencies, *other.frequencies}
        tightest = {
            period: min(each.frequencies[period] for each in (self, other) if period in each.frequencies)
            for period in periods
        }
        return Bound(self.blocked or other.blocked, min(counts, default=None), tightest)


class Rule(NamedTuple):
    """A user, a group or ALL; a port; and the bound there."""

    identity: str
    port: str
    bound: Bound


class LimitRules(NamedTuple):
    """The rules as they were loaded."""

    rules: tuple[Rule, ...] = ()

    def of(self, user: str, groups: Iterable[str], port: str) -> Bound:
        """The bound of a user's connections at a port."""
        there, theirs = [each for each in self.rules if each.port in {_ALL, port}], frozenset(groups)
        own = _tightest(each.bound for each in there if each.identity == user)
        of_groups = _tightest(each.bound for each in there if each.identity in theirs)
        others = _tightest(each.bound for each in there if each.identity.lower() == _ALL)
        return next((each for each in (own, of_groups, others) if not each.is_none), others)


def key_of(virtual_host: str | None) -> str:
    """Key of the record of rules: the broker's (None), or a virtual host's."""
    return json.dumps(virtual_host)


def parse(text: str) -> LimitRules:
    """Raises SyntaxFault that names the line."""
    if len(text) > LONGEST:
        raise SyntaxFault(f"rules have at most {LONGEST} characters")
    reading = _Reading()
    for line in lines(text):
        try:
            reading.take(line)
        except SyntaxFault as fault:
            raise SyntaxFault(f"{fault.text} at line {line.number}") from None
    return LimitRules(tuple(reading.rules()))


class _Reading:
    def __init__(self) -> None:
        self._said: list[tuple[str, dict[str, str], bool]] = []
        self._period = _USUAL_PERIOD

    def take(self, line: Line) -> None:
        word, *rest = line.tokens
        takes: Mapping[str, Callable[[list[str]], None]] = {"clt": self._clt, "config": self._config}
        if word.lower() not in takes:
            raise SyntaxFault(f"Unrecognised initial token '{word}'")
        if not rest:
            raise SyntaxFault("Not enough tokens")
        takes[word.lower()](rest)

    def rules(self) -> Iterator[Rule]:
        """The rules, once all lines are read: a period that is set on any line counts for all."""
        for identity, said, blocked in self._said:
            port = said.get("port", _ALL)
            yield Rule(identity, _ALL if port.lower() == _ALL else port, self._bound(said, blocked))

    def _bound(self, said: Mapping[str, str], blocked: bool) -> Bound:
        count = _number(said["connectionlimit"]) if "connectionlimit" in said else None
        number, slash, period = said.get("connectionfrequencylimit", "-1").partition("/")
        often, seconds = _number(number), _seconds(period) if slash else self._period
        frequencies = {seconds: often} if often is not None and seconds > 0 else {}
        return Bound(blocked, count, frequencies)

    def _clt(self, tokens: list[str]) -> None:
        identity, *rest = tokens
        blocked = any(each.lower() == "block" for each in rest)
        said: dict[str, str] = {}
        for name, value in _properties([each for each in rest if each.lower() != "block"]):
            if name not in {"port", "connectionlimit", "connectionfrequencylimit"}:
                raise SyntaxFault(f"Unknown connection limit property: {name}")
            if name in said:
                raise SyntaxFault(f"Property '{name}' has already been defined")
            said[name] = value
        self._bound(said, blocked)  # a value that is no number must be reported with its line
        self._said.append((identity, said, blocked))

    def _config(self, tokens: list[str]) -> None:
        for name, value in _properties(tokens):
            if name == "defaultfrequencyperiod":
                self._period = _integer(value) / 1000


def _properties(tokens: list[str]) -> Iterator[tuple[str, str]]:
    """Names and values; a value with a slash stays whole."""
    rest = iter(_joined(tokens))
    for name in rest:
        if next(rest, "") != "=":
            raise SyntaxFault(f"Incomplete property (no equals) '{name}'")
        value = next(rest, None)
        if value is None:
            raise SyntaxFault(f"Incomplete property (no value) '{name}'")
        yield name.lower().replace("_", "").replace("-", ""), value


def _joined(tokens: list[str]) -> list[str]:
    found: list[str] = []
    for each in tokens:
        if found and (each == "/" or found[-1].endswith("/")):
            found[-1] += each
        else:
            found.append(each)
    return found


def _integer(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise SyntaxFault(f"'{value}' is no number") from None


def _number(value: str) -> int | None:
    """None for no limit."""
    number = _integer(value)
    return None if number < 0 else min(number, _MOST)


def _seconds(period: str) -> float:
    if (word := _WORDS.get(period.lower())) is not None:
        return word
    found = _PERIOD.fullmatch(period)
    if not found or not any(each is not None for each in found.groups()):
        raise SyntaxFault(f"'{period}' is no period, such as 1m or hour")
    return sum(float(each or 1) * of for each, of in zip(found.groups(), _PARTS, strict=True) if each is not None)


def _tightest(bounds: Iterable[Bound]) -> Bound:
    tightest = Bound()
    for each in bounds:
        tightest = tightest.and_(each)
    return tightest
