from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands

from services.common.errors import ResourceError
from services.gateway.outcomes import ACCEPTED, PublishDisposition, PublishOutcome, Rejected
from services.gateway.protocols.amqp_0_9.confirms import Confirm, Confirms
from services.gateway.vocabulary import Publish
from tests.support.amqp_playbook import Playbook, content

_REFUSED = Rejected(ResourceError("full"))


def _published(first: int, last: int, outcome: PublishOutcome = ACCEPTED) -> PublishDisposition:
    return PublishDisposition(0, first, last, outcome)


def test_in_order_completions_become_one_cumulative_confirm() -> None:
    """Runs that complete in order are told with one acknowledgement of several."""
    assert Confirms().told([_published(1, 10), _published(11, 15)]) == [Confirm(1, 15, cumulative=True, accepted=True)]


def test_a_refusal_goes_out_before_the_confirm_that_covers_its_number() -> None:
    """A client never sees an acknowledgement of several before the refusal of one among them."""
    assert Confirms().told([_published(1, 1), _published(2, 2, _REFUSED), _published(3, 3)]) == [
        Confirm(2, 2, cumulative=False, accepted=False),
        Confirm(1, 3, cumulative=True, accepted=True),
    ]


def test_an_early_completion_does_not_wait_for_those_before_it() -> None:
    """A transient message is confirmed while a persistent one before it is still on its way to disk."""
    confirms = Confirms()
    assert confirms.told([_published(2, 2)]) == [Confirm(2, 2, cumulative=False, accepted=True)]
    assert confirms.told([_published(1, 1)]) == [Confirm(1, 1, cumulative=True, accepted=True)]


@given(
    st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=20),
    st.randoms(use_true_random=False),
)
def test_every_publish_hears_its_own_answer_first(runs: list[tuple[int, bool]], random: object) -> None:
    """In any order of completion, the first answer that covers a number is the one that it was given."""
    confirms, ranges, expected, first = Confirms(), list[PublishDisposition](), dict[int, bool](), 1
    for count, accepted in runs:
        ranges.append(_published(first, first + count - 1, ACCEPTED if accepted else _REFUSED))
        expected.update(dict.fromkeys(range(first, first + count), accepted))
        first += count
    random.shuffle(ranges)  # type: ignore[attr-defined]
    heard: dict[int, bool] = {}
    for start in range(0, len(ranges), 2):
        for confirm in confirms.told(ranges[start : start + 2]):
            _hear(heard, confirm)
    assert heard == expected


def _hear(heard: dict[int, bool], confirm: Confirm) -> None:
    first = 1 if confirm.cumulative else confirm.first
    for number in range(first, confirm.last + 1):
        heard.setdefault(number, confirm.accepted)


def test_publishes_have_numbers_from_confirm_select_on() -> None:
    """By which they are told of; those of one read that lie together are one request, also in pieces."""
    book = Playbook().running()
    assert _firsts(book, content(1, b"x") * 2) == [0]
    book.does(1, commands.Confirm.Select())
    three = content(1, b"x") * 2 + content(1, b"y" * 9000)
    assert [_firsts(book, three) for _ in range(3)] == [[1], [4], [7]]
    book.does(1, commands.Confirm.Select())
    assert _firsts(book, content(1, b"x")) == [10]


def _firsts(book: Playbook, data: bytes) -> list[int]:
    asked = book.engine.receive(data)
    return [each.first for each in asked if isinstance(each, Publish)]
