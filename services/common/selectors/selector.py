"""A selector: which messages a consumer wants, or a binding passes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from weakref import WeakValueDictionary

from lark import Lark
from lark.exceptions import VisitError

from services.common.memo import Memo
from services.common.selectors import logic
from services.common.selectors.compiling import Compiler, Mistaken
from services.common.selectors.grammar import GRAMMAR
from services.common.selectors.parsing import NotUnderstood, Parser
from services.common.selectors.term import Equality, Term
from services.common.selectors.values import Kind, LookUp
from services.common.selectors.words import words

LONGEST: Final = 32 << 10
"""Characters of a selector."""

MOST_WORDS: Final = 1000
"""Words and signs of one that is new, a list of texts as one: each takes some eight microseconds of everybody."""

_MOST_STEPS: Final = 256  # at each character of a text: to ask one message must not take long
_REMEMBERED: Final = 1024
_CHARACTERS: Final = 256 << 10  # of all that are remembered: compiled, each takes some thirty bytes
_SHOWN: Final = 20  # characters of what was not understood
LARK: Final = Lark(GRAMMAR, parser="lalr", start="selector", maybe_placeholders=True, transformer=Compiler())
"""The grammar's tables, and the reader that the quick one is held against."""

_PARSER: Final = Parser(LARK)


class InvalidSelector(ValueError):
    """Says what is wrong with it, and where."""


class Selector:
    """A compiled one; equal texts give the same object, by `selector`, while it is anybody's."""

    __slots__ = ("__weakref__", "evaluate", "required", "steps", "text")

    def __init__(self, text: str, term: Term) -> None:
        self.text = text
        self.required: frozenset[Equality] = term.required
        """What every message has that is selected: by any of these they can be found in an index."""
        self.steps = term.steps
        self.evaluate = term.evaluate
        """True of a message that is selected; its identifiers are asked for."""

    def selects(self, look_up: LookUp) -> bool:
        """Whether the message, whose identifiers `look_up` gives, is wanted: what is unknown is not (JMS 3.8.1.2)."""
        return self.evaluate(look_up) is True


_known: Final[Memo[str, Selector]] = Memo(_REMEMBERED, _CHARACTERS)
_in_use: Final[WeakValueDictionary[str, Selector]] = WeakValueDictionary()


def selector(text: str) -> Selector:
    """Compiles one that was taken once. Raises InvalidSelector."""
    if (known := _known.get(text) or _known.recall(text)) is None:
        if (known := _in_use.get(text)) is None:
            known = _in_use[text] = _compiled(text)
        _known.put(text, known, len(text))
    return known


def is_compiled(text: str) -> bool:
    """Whether it is at hand: another one takes time, by its length."""
    return text in _known or text in _in_use


def all_of(selectors: Sequence[Selector]) -> Selector:
    """What each of them selects, of one or more."""
    if len(selectors) == 1:
        return selectors[0]
    required = frozenset[Equality]().union(*(each.required for each in selectors))
    evaluate = logic.both([each.evaluate for each in selectors])
    term = Term(evaluate, Kind.TRUTH, required=required, steps=sum(each.steps for each in selectors))
    return Selector(" AND ".join(f"({each.text})" for each in selectors), term)


def _compiled(text: str) -> Selector:
    if len(text) > LONGEST:
        raise InvalidSelector(f"longer than {LONGEST} characters")
    term = _parsed(text)
    if term.kind not in {Kind.TRUTH, Kind.ANY}:
        raise InvalidSelector(f"it gives {term.kind.value}, and has to give a truth value")
    return Selector(text, term)


def check_words(text: str) -> None:
    """Raises InvalidSelector for more than one that is new may have."""
    if len(text) > LONGEST:
        raise InvalidSelector(f"longer than {LONGEST} characters")
    if len(text) > MOST_WORDS and words(text) > MOST_WORDS:
        raise InvalidSelector(f"more than {MOST_WORDS} words and signs; a list of texts behind IN counts as one")


def said_now(text: str) -> Selector:
    """The same of one that is new, which may not cost much. Raises InvalidSelector.

    What was taken once is heeded, whatever it costs: without it a consumer or a binding would be given everything.
    """
    check_words(text)  # before it is compiled, which is what costs
    found = selector(text)
    if found.steps > _MOST_STEPS:
        raise InvalidSelector(f"more than {_MOST_STEPS} characters stand between two % and have _ among them")
    return found


def _parsed(text: str) -> Term:
    try:
        # The transformer is called while it is parsed: nothing goes by how deep terms lie in each other.
        return _PARSER.parse(text)  # type: ignore[no-any-return]
    except NotUnderstood as error:
        raise InvalidSelector(_not_understood(text, error.at)) from None
    except VisitError as error:
        raise InvalidSelector(str(error.orig_exc)) from None
    except Mistaken as error:
        raise InvalidSelector(str(error)) from None


def _not_understood(text: str, at: int | None) -> str:
    if at is None:
        return "it ends too early"
    return f"not understood at character {at + 1}: {text[at : at + _SHOWN]!r}"
