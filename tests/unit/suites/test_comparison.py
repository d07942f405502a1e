from __future__ import annotations

from suites.comparison import compare
from suites.differences import Difference
from suites.outcome import Outcome, Told

PASSED, FAILED, SKIPPED = (Told(outcome) for outcome in (Outcome.passed, Outcome.failed, Outcome.skipped))


def test_what_passes_there_and_not_here_differs() -> None:
    """Failed, skipped and missing tests differ, with what the runner says; what fails there too does not."""
    here = {"a": Told(Outcome.failed, "540"), "b": SKIPPED, "d": FAILED, "e": PASSED}
    there = {"a": PASSED, "b": PASSED, "c": PASSED, "d": FAILED, "e": PASSED}
    unlisted = compare("pika", [here], there, []).unlisted
    assert list(unlisted) == ["a", "b", "c"]
    assert unlisted["a"] == "540"


def test_what_passes_when_run_again_is_unsteady() -> None:
    """A test that failed first and passed then is no difference, and neither is one that only failed then."""
    there = {"a": PASSED, "b": PASSED, "c": PASSED}
    runs = [{"a": FAILED, "b": PASSED, "c": FAILED}, {"a": PASSED, "b": FAILED, "c": FAILED}]
    comparison = compare("pika", runs, there, [])
    assert comparison.unsteady == ["a"]
    assert list(comparison.unlisted) == ["c"]


def test_a_listed_difference_is_told_with_its_reason() -> None:
    """It counts for its suite alone, brackets in its name mean themselves, and * stands for anything."""
    difference = Difference("amqp", "publish[*True]", "`immediate`", "the specification has it")
    here, there = (
        {"publish[plain-True]": FAILED, "publisht": FAILED},
        {"publish[plain-True]": PASSED, "publisht": PASSED},
    )
    comparison = compare("amqp", [here], there, [difference])
    assert comparison.listed == {"publish[plain-True]": "the specification has it"}
    assert list(comparison.unlisted) == ["publisht"]
    assert compare("kombu", [here], there, [difference]).listed == {}
