"""What a partition knows of messages that may be sent again: exactly what was taken, for exactly as long as it may."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from services.queue.journal.known import Known, Taken
from services.rpc.store_pb2 import TakenColumns

QUEUES = (1, 2, 3)
ORIGINS = (5, 6)


def uid(origin: int, sequence: int) -> int:
    return origin << 39 | sequence


def took(known: Known, origin: int, sequences: list[int], *queue_ids: int) -> Taken:
    """A batch of messages, all of which went to some queues."""
    taken = Taken(origin, [uid(origin, sequence) for sequence in sequences])
    known.add(taken)
    for queue_id in queue_ids:
        known.took(taken, queue_id, range(len(sequences)))
    return taken


def new(known: Known, queue_id: int, origin: int, *sequences: int) -> list[int]:
    """Of what comes again, the sequences that were not taken."""
    parts, _ = known.split(queue_id, [uid(origin, sequence) for sequence in sequences])
    return [sequence for first, end in parts for sequence in sequences[first:end]]


def test_it_is_known_queue_by_queue() -> None:
    """A message that one queue of a partition took is new to another: fan-outs come again in parts."""
    known = Known()
    took(known, 5, [1, 2, 3], 1)
    assert new(known, 1, 5, 1, 2, 3, 4) == [4]
    assert new(known, 2, 5, 1, 2, 3, 4) == [1, 2, 3, 4]


def test_what_is_lower_than_what_was_taken_is_new() -> None:
    """What was overtaken on its way is not taken for known."""
    known = Known()
    took(known, 5, [10, 11], 1)
    assert new(known, 1, 5, 7, 8, 10, 11, 12) == [7, 8, 12]


def test_it_is_known_until_it_was_heard() -> None:
    """A publisher that knows of an answer does not send again: nothing is kept for it."""
    known = Known()
    one, other = took(known, 5, [1], 1), took(known, 5, [2], 1)
    known.journalled(70, one, [(1, 0, 1, 0)])
    known.heard(one)
    assert known.floor(5) == uid(5, 2)
    assert not list(known.departing(70))
    known.heard(other)
    assert not known.origins()


def test_a_broken_link_s_batches_are_known_until_all_came_again() -> None:
    """What was taken on a former link is known on the next one, until its publisher has said that it sent all again."""
    known = Known()
    taken = took(known, 5, [1, 2], 1)
    known.link_ended(taken)
    assert new(known, 1, 5, 1, 2, 3) == [3]
    again = took(known, 5, [3], 1)
    known.sent_again(5)
    known.heard(again)
    assert not known.origins()


def test_the_next_owner_knows() -> None:
    """What left its queue, and what is still there, is known by what was written; what was heard is not."""
    known = Known()
    heard, one, other = took(known, 5, [1], 1), took(known, 5, [2, 3, 9], 1, 2), took(known, 6, [1, 2], 3)
    known.journalled(70, one, [(1, 0, 3, 0), (2, 0, 3, 0)])
    known.heard(heard)
    departures = list(known.departing(70))
    assert not list(known.departing(70))
    successor = Known()
    successor.recover_floor(5, known.floor(5))
    successor.recover_floor(6, known.floor(6))
    for departure in departures:
        assert departure.upto == uid(5, 9)
        successor.recover_taken(departure.origin, TakenColumns.FromString(departure.columns.SerializeToString()))
    successor.recover_batch(80, [(3, 0, 2)], other.uids, handed_over=False)
    successor.recover_batch(81, [(1, 0, 1)], heard.uids, handed_over=False)
    assert new(successor, 1, 5, 1, 2, 3, 4, 9) == [1, 4]
    assert new(successor, 2, 5, 2, 3, 4, 9) == [4]
    assert new(successor, 3, 6, 1, 2, 3) == [3]
    assert [departure.origin for departure in successor.departing(80)] == [6]
    assert not list(successor.departing(81))
    assert successor.floor(5) == known.floor(5)


def test_what_publishers_wrote_together_is_told_apart() -> None:
    """A batch that a former owner handed over may hold messages of several publishers, in any order."""
    known = Known()
    known.recover_floor(5, uid(5, 4))
    uids = [uid(6, 1), uid(5, 5), uid(5, 3), uid(5, 4)]
    known.recover_batch(80, [(1, 0, 4)], uids, handed_over=True)
    assert new(known, 1, 5, 3, 4, 5) == [3]
    assert new(known, 1, 6, 1) == [1]
    ((origin, upto, columns),) = known.handed_over()
    assert (origin, upto, list(columns.first), list(columns.count)) == (5, uid(5, 5), [uid(5, 4)], [2])


def test_what_many_publishers_have_left() -> None:
    """Of those that nothing was heard of for long less is known, not of the one that is oldest and lives."""
    known = Known()
    for origin in [*range(6, 6 + 100), 5]:  # as the store gives them: the one that changed last is last
        known.recover_floor(origin, uid(origin, 10))
    known.recover_batch(80, [(1, 0, 2)], [uid(5, 10), uid(5, 11)], handed_over=False)
    assert new(known, 1, 5, 9, 10, 11, 12) == [9, 12]
    assert len(known.origins()) == 64
    for origin in range(200, 263):
        known.link_ended(took(known, origin, [1], 1))
    assert new(known, 1, 5, 10, 11) == []
    known.link_ended(took(known, 5, [12], 1))
    known.link_ended(took(known, 300, [1], 1))
    assert new(known, 1, 5, 10, 11, 12) == []
    assert new(known, 1, 200, 1) == [1]


def test_floors_of_many_publishers() -> None:
    """The oldest publisher's is written as seldom as the others', however many there are."""
    known = Known()
    for origin in [*range(6, 6 + 63), 5, 200]:
        took(known, origin, [1], 1)
        assert known.floor_due(origin, 0.0) == uid(origin, 1)
    assert known.floor_due(5, 0.5) is None


class Machine(RuleBasedStateMachine):
    """Batches are taken, heard, sent again on other links and to other owners, in any order; a set is the judge."""

    def __init__(self) -> None:
        super().__init__()
        self.known = Known()
        self.next = dict.fromkeys(ORIGINS, 1)
        self.open: list[Taken] = []
        self.may_come: dict[int, set[tuple[int, int]]] = {origin: set() for origin in ORIGINS}
        self.taken = 0  # messages on queues
        self.never: set[tuple[int, int]] = set()  # (queue, uid) that were not taken, and can come

    @rule(
        origin=st.sampled_from(ORIGINS),
        count=st.integers(1, 5),
        gap=st.integers(0, 3),
        queues=st.sets(st.sampled_from(QUEUES), min_size=1),
    )
    def take(self, origin: int, count: int, gap: int, queues: set[int]) -> None:
        first = self.next[origin] + gap
        self.next[origin] = first + count
        taken = took(self.known, origin, list(range(first, first + count)), *sorted(queues))
        self.open.append(taken)
        self.taken += count * len(queues)
        self.may_come[origin] |= {(queue, one) for queue in queues for one in taken.uids}
        self.never |= {(queue, one) for queue in set(QUEUES) - queues for one in taken.uids}

    @rule(data=st.data())
    def hear(self, data: st.DataObject) -> None:
        if self.open:
            taken = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
            self.known.heard(taken)
            self.may_come[taken.origin] -= {(queue, one) for queue in QUEUES for one in taken.uids}

    @rule(origin=st.sampled_from(ORIGINS))
    def break_link(self, origin: int) -> None:
        for taken in [taken for taken in self.open if taken.origin == origin]:
            self.known.link_ended(taken)
            self.open.remove(taken)

    @rule(origin=st.sampled_from(ORIGINS))
    def all_came_again(self, origin: int) -> None:
        self.known.sent_again(origin)
        self.may_come[origin] = {
            (queue, one) for taken in self.open if taken.origin == origin for queue, first, count in taken.spans()
            for one in range(first, first + count)
        }  # fmt: skip

    @rule()
    def change_owner(self) -> None:
        successor = Known()
        for origin in self.known.origins():
            successor.recover_floor(origin, self.known.floor(origin))
        for origin, _, columns in self.known.handed_over():
            successor.recover_taken(origin, columns)
        self.known, self.open = successor, []
        assert len(list(successor.spans())) <= self.taken, "what is handed over does not multiply"

    @invariant()
    def nothing_is_taken_twice_or_left_out(self) -> None:
        for origin in ORIGINS:
            for queue in QUEUES:
                mine = sorted(one for where, one in self.may_come[origin] if where == queue)
                others = sorted(one for where, one in self.never if where == queue and one >> 39 == origin)
                assert self.known.split(queue, mine)[0] == [] or not mine
                assert self.known.split(queue, others)[1] == [] or not others


TestMachine = Machine.TestCase


def test_the_floor_is_below_what_came_late() -> None:
    """What was refused first and is taken behind later messages is not taken for heard."""
    known = Known()
    later, late = took(known, 5, [20, 21], 1), took(known, 5, [10], 1)
    assert known.floor(5) == uid(5, 10)
    known.heard(late)
    assert known.floor(5) == uid(5, 20)
    took(known, 5, [30], 1)
    known.heard(later)
    assert known.floor(5) == uid(5, 30)


def test_batches_of_several_partitions_do_not_ascend() -> None:
    """What is known of a batch goes by its own messages, with anything else in its frame."""
    known = Known()
    known.recover_floor(5, uid(5, 200))
    known.recover_batch(80, [(1, 0, 2)], [uid(5, 200), uid(5, 201), uid(5, 100), uid(5, 101)], handed_over=False)
    assert new(known, 1, 5, 200, 201) == []


def test_a_publisher_that_hears_leaves_nothing_behind() -> None:
    """While something comes again from one publisher, what another hears of is not kept for that."""
    known = Known()
    known.link_ended(took(known, 5, [1], 1))
    assert new(known, 1, 5, 1) == []
    for sequence in range(1, 100):
        known.heard(took(known, 6, [sequence], 1))
    assert known._index == {1: {uid(5, 1)}}


def test_publishers_that_never_come_back_are_few() -> None:
    """Of gateways that died, each with something unheard, the oldest are forgotten."""
    known = Known()
    for origin in range(1, 200):
        known.link_ended(took(known, origin, [1], 1))
    assert known.origins() == list(range(136, 200))


def test_a_floor_is_written_once_in_a_while() -> None:
    """The first one at once, and one that falls; one that rises when some time has passed."""
    known = Known()
    first = took(known, 5, [4, 5], 1)
    assert known.floor_due(5, 0.0) == uid(5, 4)
    took(known, 5, [6], 1)
    known.heard(first)
    assert known.floor_due(5, 0.9) is None
    assert known.floor_due(5, 1.0) == uid(5, 6)
    took(known, 5, [2], 1)
    assert known.floor_due(5, 1.1) == uid(5, 2)


def test_a_floor_that_was_not_written_is_due() -> None:
    """The frame with it was refused."""
    known = Known()
    took(known, 5, [4], 1)
    known.floor_due(5, 0.0)
    known.floors_lost()
    assert known.floor_due(5, 0.1) == uid(5, 4)


def test_messages_of_a_batch_that_are_no_neighbours() -> None:
    """A queue takes any of a batch, and is known to have those and no others."""
    known = Known()
    taken = Taken(5, [uid(5, sequence) for sequence in (1, 2, 3, 4, 9)])
    known.add(taken)
    known.took(taken, 2, [1, 4])
    known.took(taken, 1, [0, 2, 3])
    assert known.floor(5) == uid(5, 1)
    assert new(known, 1, 5, 1, 2, 3, 4, 9) == [2, 9]
    assert new(known, 2, 5, 1, 2, 3, 4, 9) == [1, 3, 4]
    assert list(taken.spans()) == [(2, uid(5, 2), 1), (2, uid(5, 9), 1), (1, uid(5, 1), 1), (1, uid(5, 3), 2)]


def test_what_comes_again_twice_at_once() -> None:
    """A message that was refused, and sent again once more with its whole batch, is taken once."""
    known = Known()
    sequences = [1, 2, 3, 2, 3, 3]
    new, old = known.split(1, [uid(5, sequence) for sequence in sequences])
    assert (new, old) == ([(0, 3)], [(3, 6)])
    took(known, 5, [1], 1)
    new, old = known.split(1, [uid(5, sequence) for sequence in sequences])
    assert (new, old) == ([(1, 3)], [(0, 1), (3, 6)])
