from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.gateway.sessions.confirms import Confirm, ConfirmTracker


def test_in_order_completions_become_one_cumulative_confirm() -> None:
    """Runs that complete in order are told with one acknowledgement of several."""
    tracker = ConfirmTracker()
    first, second = tracker.number(10), tracker.number(5)
    tracker.complete(first, 10, accepted=True)
    tracker.complete(second, 15, accepted=True)
    assert tracker.take() == [Confirm(1, 15, cumulative=True, accepted=True)]


def test_a_refusal_goes_out_before_the_confirm_that_covers_its_number() -> None:
    """A client never sees an acknowledgement of several before the refusal of one among them."""
    tracker = ConfirmTracker()
    tracker.number(3)
    tracker.complete(1, 1, accepted=True)
    tracker.complete(2, 2, accepted=False)
    tracker.complete(3, 3, accepted=True)
    assert tracker.take() == [
        Confirm(2, 2, cumulative=False, accepted=False),
        Confirm(1, 3, cumulative=True, accepted=True),
    ]


def test_an_early_completion_does_not_wait_for_those_before_it() -> None:
    """A transient message is confirmed while a persistent one before it is still on its way to disk."""
    tracker = ConfirmTracker()
    tracker.number(2)
    tracker.complete(2, 2, accepted=True)
    assert tracker.take() == [Confirm(2, 2, cumulative=False, accepted=True)]
    tracker.complete(1, 1, accepted=True)
    assert tracker.take() == [Confirm(1, 1, cumulative=True, accepted=True)]


@given(
    st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=20),
    st.randoms(use_true_random=False),
)
def test_every_publish_hears_its_own_answer_first(runs: list[tuple[int, bool]], random: object) -> None:
    """In any order of completion, the first answer that covers a number is the one that it was given."""
    tracker, ranges, expected = ConfirmTracker(), [], {}
    for count, accepted in runs:
        first = tracker.number(count)
        ranges.append((first, first + count - 1, accepted))
        expected.update(dict.fromkeys(range(first, first + count), accepted))
    random.shuffle(ranges)  # type: ignore[attr-defined]
    heard: dict[int, bool] = {}
    for position, (first, last, accepted) in enumerate(ranges):
        tracker.complete(first, last, accepted=accepted)
        for confirm in tracker.take() if position % 2 else []:
            _hear(heard, confirm)
    for confirm in tracker.take():
        _hear(heard, confirm)
    assert heard == expected


def _hear(heard: dict[int, bool], confirm: Confirm) -> None:
    first = 1 if confirm.cumulative else confirm.first
    for number in range(first, confirm.last + 1):
        heard.setdefault(number, confirm.accepted)
