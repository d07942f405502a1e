"""How much there is of a selector."""

from __future__ import annotations

import pytest

from services.common.arguments import binding, filters
from services.common.arguments.reading import Wrong
from services.common.selectors import selector as remembering
from services.common.selectors.selector import (
    LONGEST,
    MOST_WORDS,
    InvalidSelector,
    Selector,
    all_of,
    said_now,
    selector,
)
from services.common.selectors.words import words


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("a = 1", 3),
        ("a=-1.5e3 AND NOT(b)", 9),
        ("a <> 'it''s, (so)'", 4),
        ("colour IN ('red', 'it''s','') OR b", 5),
        ("colour IN ('red' -- or\n, 'blue')", 7),
        ('"a ""b"" c" = 1 /* a = 1 */ -- c\n', 3),
        ("a = 1 /* a b c", 3),
        ("'a b c", 4),
    ],
)
def test_words(text: str, count: int) -> None:
    """And signs; a list of texts is one, and what says nothing is none."""
    assert words(text) == count


def _alternatives(count: int) -> str:
    return " OR ".join(f"a{number}" for number in range(count))


def test_what_takes_long_is_refused_before_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a new one, wherever it is said; what was taken by an older release is heeded."""
    most, more = _alternatives(MOST_WORDS // 2), _alternatives(MOST_WORDS // 2 + 1)
    assert said_now(most).selects({"a7": True}.get)
    compiled: list[str] = []
    real = remembering._compiled

    def compiling(text: str) -> Selector:
        compiled.append(text)
        return real(text)

    monkeypatch.setattr(remembering, "_compiled", compiling)
    why = f"more than {MOST_WORDS} words and signs"
    with pytest.raises(InvalidSelector, match=why):
        said_now(more)
    with pytest.raises(Wrong, match=why):
        binding.check({filters.SELECTOR: more})
    assert why in str(filters.costly({"many": {filters.SELECTOR: [more]}}))
    assert not compiled
    assert selector(more).selects({"a7": True}.get)


def test_filters_are_bounded_together() -> None:
    """They are one selector in the end."""
    some = {str(number): {filters.SELECTOR: [_alternatives(MOST_WORDS // 4)]} for number in range(4)}
    assert filters.wrong(some) is None
    assert f"more than {MOST_WORDS} words and signs" in str(filters.costly(some))


def test_a_long_list_counts_as_one() -> None:
    """Thousands of texts behind IN are taken in one piece; with a comment among them, or none, they mean the same."""
    texts = [f"it''s {number}" for number in range(2000)]
    listed = said_now("a IN ('" + "', '".join(texts) + "')")
    assert listed.selects({"a": "it's 1999"}.get)
    assert not listed.selects({"a": "it's 2000"}.get)
    commented = said_now("a NOT IN ('x', -- or\n 'it''s 7' )")
    assert [commented.selects({"a": each}.get) for each in ("x", "it's 7", "y")] == [False, False, True]


def test_several_as_one() -> None:
    """However long they are together: a queue's filters and its consumer's were an internal error where they were."""
    one, other = (selector(f"{name} IN ('{'x' * (LONGEST - 50)}', 'y')") for name in "ab")
    both = all_of([one, other, selector("c = 5")])
    assert both.required == selector("c = 5").required
    assert both.selects({"a": "y", "b": "y", "c": 5}.get)
    assert not both.selects({"a": "y", "b": "z", "c": 5}.get)
    assert not both.selects({"a": "y", "c": 5}.get)
    assert all_of([one]) is one
