"""When clients last asked."""

from __future__ import annotations

from services.gateway.connections.questions import Questions


def test_who_asks_is_no_other() -> None:
    """However often it does, and whoever did before."""
    questions = Questions()
    questions.ask("a", 1.0)
    questions.ask("a", 2.0)
    assert questions.of_others("a") == 0.0
    assert questions.of_others("b") == 2.0


def test_two_that_ask_in_turn() -> None:
    """Each is told of the other's latest question, and a third one of the latest of both."""
    questions = Questions()
    for now, asker in enumerate("abaab", 1):
        questions.ask(asker, float(now))
    assert [questions.of_others(each) for each in "abc"] == [5.0, 4.0, 5.0]


def test_a_read_that_waited_for_its_turn() -> None:
    """It is older than what was asked since, and puts no time back."""
    questions = Questions()
    questions.ask("a", 5.0)
    questions.ask("b", 4.0)
    assert questions.of_others("c") == 5.0
