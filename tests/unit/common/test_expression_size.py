"""How large an expression gets when it is made, told by its text."""

from __future__ import annotations

import pytest

from services.common.expression_size import check_kind, check_size

UUID = "^user-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        (UUID, 43),
        ("(a{100}){100}", 10_100),
        ("x|(y)z{2,5}{3}", 19),
        (r"\(a{5}\[b{5}", 12),
        ("[a(]{3}(c{2})", 6),
    ],
)
def test_what_repeats_counts_as_often(pattern: str, most: int) -> None:
    """Inside what repeats again as often as both say, beside it by itself; so much is let in, and no less."""
    check_size(pattern, 100, most)
    with pytest.raises(ValueError, match=f"more than {most - 1} characters, if what repeats were written as often"):
        check_size(pattern, 100, most - 1)


@pytest.mark.parametrize("pattern", ["[[](a{9}){9}]", "[](a{9}){9}]", "(?#()a{9}a{9}", "((a{9}){9}", "(?x)a{9}a{9}"])
def test_parts_that_are_not_told_apart_are_taken_to_be_inside_one_another(pattern: str) -> None:
    """Brackets in sets and in remarks, and those that do not close, hide nothing."""
    with pytest.raises(ValueError, match="as often"):
        check_size(pattern, 100, len(pattern) * 80)


@pytest.mark.parametrize(
    ("pattern", "why"), [("a" * 101, "longer than 100"), ("(" * 51 + ")" * 49, "inside one another")]
)
def test_long_and_deep_ones(pattern: str, why: str) -> None:
    """Are refused, however little repeats."""
    with pytest.raises(ValueError, match=why):
        check_size(pattern, 100, 10_000)


@pytest.mark.parametrize("pattern", ["(?R)?a", "a{e<=1}", "(?x)a"])
def test_what_nothing_bounds(pattern: str) -> None:
    """Is refused for what it is; the same escaped is not."""
    with pytest.raises(ValueError, match="not for regular expressions here"):
        check_kind(pattern)
    check_kind(pattern.replace("(", r"\(").replace("{", r"\{"))
