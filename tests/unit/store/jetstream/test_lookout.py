"""Whether a writer is absent for long enough, as those who stand by see it."""

from __future__ import annotations

from services.store.providers.jetstream_lookout import Absence


def test_it_says_that_it_ends() -> None:
    """Then one moment without a listener is enough; before, the writer may be making its connection anew."""
    absence = Absence(lambda: 1.0)
    assert absence.heard("this") == "this"
    assert absence.heard(None) == "this"
    absence.ends("this")
    assert absence.heard("this") == "this"
    assert absence.heard(None) == ""


def test_another_was_faster() -> None:
    """Its absence counts from its own beginning, not from that of the one before it."""
    now = [1.0]
    absence = Absence(lambda: now[0])
    absence.heard("this")
    assert absence.heard(None) == "this"
    now[0] = 3.0
    assert absence.heard(None) == ""
    absence.tried()
    assert absence.heard(None) == "this"
    now[0] = 5.0
    assert absence.heard(None) == ""


def test_it_stays_absent() -> None:
    """It is said again until it is tried: where configuration is apart its writer may be there for a moment more."""
    now = [1.0]
    absence = Absence(lambda: now[0])
    absence.heard("this")
    assert absence.heard("") == "this"
    now[0] = 12.0
    assert absence.heard("") == absence.heard("") == ""
    assert absence.heard("this") == "this"
    assert absence.heard("") == "this"


def test_another_says_so() -> None:
    """A notice of one that was overtaken, and ends, is not about the present writer, before that is known and after."""
    absence = Absence(lambda: 1.0)
    absence.heard("that")
    absence.heard("this")
    absence.ends("that")
    assert absence.heard(None) == "this"
    absence.ends("this")
    absence.ends("that")
    assert absence.heard(None) == ""
