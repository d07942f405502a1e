"""Which ids small files have, in memory."""

from __future__ import annotations

from services.mgmt.lookup.few_ids import FewIds
from services.mgmt.lookup.versions import Version

FIRST, SECOND = Version(1, 1, 1, 1), Version(2, 2, 2, 2)


def test_what_it_lacks() -> None:
    """A file lacks what it has not, as far as it is known: what nobody told, it may have."""
    few = FewIds()
    assert not few.lacks("a", FIRST, "one")
    few.learn("a", FIRST, ["one", "two", "one"])
    assert [few.lacks("a", FIRST, name) for name in ("one", "two", "three", "")] == [False, False, True, True]
    assert [few.knows(*file) for file in (("a", FIRST), ("b", FIRST), ("a", SECOND))] == [True, False, False]


def test_nothing() -> None:
    """A file of nothing lacks everything."""
    few = FewIds()
    few.learn("a", FIRST, [])
    assert few.lacks("a", FIRST, "one")


def test_another_file_of_the_name() -> None:
    """What is put in the place of a file may have everything."""
    few = FewIds()
    few.learn("a", FIRST, ["one"])
    assert not few.lacks("a", SECOND, "two")


def test_bound() -> None:
    """What would be too much is not learnt, and nothing is forgotten for it; what is replaced counts no more."""
    few = FewIds(most=3)
    few.learn("a", FIRST, ["one", "two"])
    few.learn("b", FIRST, ["three", "four"])
    assert (few.knows("a", FIRST), few.knows("b", FIRST)) == (True, False)
    assert [few.has_room(count) for count in (1, 2)] == [True, False]
    few.learn("a", FIRST, ["one", "two"])  # by another thread
    few.learn("b", FIRST, ["three"])
    assert few.knows("b", FIRST)
    few.learn("a", SECOND, ["one"])
    few.learn("c", FIRST, ["five"])
    assert [few.knows(*file) for file in (("a", SECOND), ("b", FIRST), ("c", FIRST))] == [True] * 3
