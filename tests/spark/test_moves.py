"""How partitions change hands, by hand. No Spark."""

from __future__ import annotations

from typing import Any

import pytest

from spark.moves import Lives, Move, Owner, moves

S = 1_000_000
A, B = "queue-a", "queue-b"


def owner(epoch: int, instance: str, began: int, ended: int, **facts: Any) -> Owner:
    blank: dict[str, Any] = {"released": None, "announced": False, "recovered": 0, "handed_over": 0}
    return Owner(1, epoch, instance, began * S, ended * S, **{**blank, **facts})


def move(before: Owner, after: Owner, heard: int = 50, died: int | None = None, end: int = 1000) -> Move:
    lives = Lives({A: heard * S, B: end * S}, {} if died is None else {A: died * S}, end * S)
    (found,) = moves([after, before], lives)
    return found


BEFORE, NEXT = owner(1, A, 0, 50), owner(2, B, 100, 200)
ANNOUNCED = NEXT._replace(announced=True)


@pytest.mark.parametrize(
    ("found", "how", "silence"),
    [
        (move(BEFORE._replace(released=50 * S), ANNOUNCED, heard=500), "handed_over", 50),
        (move(BEFORE._replace(released=50 * S), ANNOUNCED, heard=50), "handed_over", 50),
        (move(BEFORE, NEXT._replace(handed_over=3), heard=500), "handed_over", 50),
        (move(BEFORE, NEXT, heard=500), "handed_over", 50),  # of an older release: it lives
        (move(BEFORE, NEXT), "handed_over", 50),  # and was not missed
        (move(BEFORE, ANNOUNCED, heard=95, died=98), "crash", 2),
        (move(BEFORE, NEXT._replace(recovered=7), heard=95, died=95), "crash", 5),
        (move(BEFORE, NEXT, heard=700, died=700), "handed_over", 50),  # it died long after
        (move(BEFORE, ANNOUNCED._replace(handed_over=3), heard=95, died=98), "crash", 2),
        (move(BEFORE._replace(announced=True), ANNOUNCED._replace(handed_over=3), heard=700), "lapsed", 50),
        (move(BEFORE, ANNOUNCED, heard=700), "lapsed", 50),
        (move(BEFORE, NEXT._replace(instance=A), heard=200), "lapsed", 50),
        (move(BEFORE, ANNOUNCED, end=130), "unknown", 50),
    ],
)
def test_how(found: Move, how: str, silence: int) -> None:
    """An owner that said so handed over, one that was missed died, and one that lives lost its lease: whatever an
    earlier owner wrote down for the next.
    """
    assert (found.how, found.silence) == (how, silence * S)
    assert (found.source, found.epoch, found.first_seen) == (A, 2, 100 * S)


def test_first_owner() -> None:
    """A first owner has moved nothing; each partition is judged by itself."""
    other = owner(5, B, 3, 4)._replace(partition=2)
    assert moves([BEFORE, other], Lives({}, {}, 0)) == []
