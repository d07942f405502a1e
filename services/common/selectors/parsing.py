"""A quick reader of the grammar: Lark makes its tables, and this goes through them.

Lark's own reader takes four times as long, for what is not needed here: it counts lines, makes an object of each word,
and calls a function for each rule that does nothing (`?either: both`), seven for a name. A selector of a thousand words
would be thirty milliseconds in which nobody else is served. `tests/unit/common/selectors/test_parsing.py` holds this
against Lark's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from lark import Lark
from lark.grammar import Rule
from lark.parsers.lalr_analysis import Shift

_END: Final = "$END"
_NAME: Final = "NAME"
_TEXTS: Final = "TEXTS"
_IGNORED: Final = frozenset({"COMMENT", "SPACE"})
_Action = tuple[Any, Any]  # Shift and a state, or Reduce and a rule


class NotUnderstood(ValueError):
    """At a character, counted from 0; None: the text ends too early."""

    def __init__(self, at: int | None) -> None:
        super().__init__(at)
        self.at = at


class Parser:
    """Of what `lark`, an LALR parser with a transformer, understands; the results are its transformer's."""

    def __init__(self, lark: Lark) -> None:
        conf = lark.parse_interactive("").parser_state.parse_conf
        self._begin = conf.start_state
        self._end = conf.end_state
        self._states: Mapping[Any, Mapping[str, _Action]] = conf.states
        self._rules: Mapping[Rule, tuple[int, str, Callable[[list[Any]], Any]]] = {
            rule: (len(rule.expansion), rule.origin.name, call)
            for rule, call in conf.callbacks.items()
            if isinstance(rule, Rule)
        }
        self._passing = frozenset(filter(_passes, self._rules))
        self._next: dict[tuple[Any, str, str], Any] = {}  # states, by the one below, what was made, what follows
        self._words = _Words(lark)

    def parse(self, text: str) -> Any:  # noqa: ANN401 - the transformer's
        """Raises NotUnderstood, and what the transformer raises, in VisitError or as it is."""
        states, values, at = [self._begin], list[Any](), 0
        while True:
            wanted = self._states[states[-1]]
            kind, begins, ends = self._words.next(text, at, wanted)
            self._reduce(states, values, kind, begins)
            if kind == _END:
                return values[-1]
            states.append(self._states[states[-1]][kind][1])
            values.append(text[begins:ends])
            at = ends

    def _reduce(self, states: list[Any], values: list[Any], kind: str, at: int) -> None:
        """What is complete before a word of that kind becomes what it stands for."""
        while (action := self._states[states[-1]].get(kind)) is not None and action[0] is not Shift:
            size, made, call = self._rules[action[1]]
            parts = values[-size:] if size else []
            if size:
                del states[-size:], values[-size:]
            values.append(call(parts))
            states.append(self._after(states[-1], made, kind))
            if states[-1] == self._end:
                return
        if action is None:
            raise NotUnderstood(None if kind == _END else at)

    def _after(self, below: Any, made: str, kind: str) -> Any:  # noqa: ANN401 - a state is Lark's
        """The state where `made` stands on `below`, and `kind` follows: that of what it passes for, in the end."""
        key = (below, made, kind)
        found = self._next.get(key)
        if found is None:
            found = self._states[below][made][1]
            action = self._states[found].get(kind) if found != self._end else None
            if action and action[0] is not Shift and action[1] in self._passing:
                found = self._after(below, action[1].origin.name, kind)
            self._next[key] = found
        return found


def _passes(rule: Rule) -> bool:
    """Whether what it makes is its only part, which is no word."""
    return len(rule.expansion) == 1 and not rule.expansion[0].is_term and rule.options.expand1 and not rule.alias


class _Words:
    """What stands next in a text, of what the parser can take there: OR may be a name where no condition ends."""

    def __init__(self, lark: Lark) -> None:
        patterns = {each.name: each.pattern.to_regexp() for each in lark.terminals}
        self._ignored = re.compile("(?:" + "|".join(patterns.pop(name) for name in sorted(_IGNORED)) + ")*")
        self._texts = re.compile(patterns.pop(_TEXTS))
        self._keywords = [(name, re.compile(patterns.pop(name))) for name in list(patterns) if name.startswith("_")]
        self._known: dict[str, str] = {name[1:].lower(): name for name, _ in self._keywords}
        # No two of the others match at the same place; names and numbers are most.
        signs = sorted(patterns, key=lambda name: name not in {_NAME, "DECIMAL"})
        self._any = re.compile("|".join(f"(?P<{name}>{patterns[name]})" for name in signs))

    def next(self, text: str, at: int, wanted: Mapping[str, Any]) -> tuple[str, int, int]:
        """Its kind, where it begins and ends. Raises NotUnderstood."""
        if skipped := self._ignored.match(text, at):
            at = skipped.end()
        if at == len(text):
            return _END, at, at
        if _TEXTS in wanted and (found := self._texts.match(text, at)):
            return _TEXTS, at, found.end()
        if (found := self._any.match(text, at)) is None:
            raise NotUnderstood(at)
        kind = found.lastgroup or ""
        if kind == _NAME and (keyword := self._keyword(found[0])) in wanted:
            kind = keyword
        return kind, at, found.end()

    def _keyword(self, name: str) -> str:
        if name.isascii():
            return self._known.get(name.lower(), _NAME)
        return next((kind for kind, pattern in self._keywords if pattern.fullmatch(name)), _NAME)
