"""Mixed messages arrive at each queue as they were published, in pieces of any size."""

from __future__ import annotations

from dataclasses import replace
from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from services.common.clients.outbound import Attempt, Delivery, Messages, encode, frames_of
from services.common.clients.refusals import Refusals
from services.common.message.in_front import Parts
from services.common.message.indexes import choice, condensed
from services.queue.machine.columns import Columns, decoded
from services.queue.machine.message import Interned
from services.rpc import queue_pb2 as pb
from tests.support.messages import facts

QUEUES = (1, 2, 3)
KINDS = [facts("x", str(number % 3), persistent=number % 2 == 0, priority=number) for number in range(6)]


@st.composite
def mixtures(draw: st.DrawFn) -> Messages:
    """Of any facts, to any of three queues; small ones, or large ones; some of them dead letters."""
    count, largest = draw(st.integers(1, 12)), draw(st.sampled_from([0, 100, 20_000]))
    sizes = draw(st.lists(st.sampled_from([0, largest]), min_size=count, max_size=count))
    targets = draw(st.lists(st.sets(st.sampled_from(QUEUES), min_size=1), min_size=count, max_size=count))
    return Messages(
        range(10, 10 + count),
        draw(st.lists(st.sampled_from(KINDS), min_size=count, max_size=count)),
        draw(st.lists(st.sampled_from([b"p", b"q"]), min_size=count, max_size=count)),
        [b"%d" % number + bytes(size) for number, size in enumerate(sizes)],
        [tuple(sorted(some)) for some in targets],
        range(count),
        frozenset(draw(st.sets(st.integers(0, count - 1)))),
        letters={number: (9, number) for number in draw(st.sets(st.integers(0, count - 1)))},
    )


def attempt(messages: Messages) -> Attempt:
    return Attempt(messages, messages.by_queue(), 0, Delivery(None, messages.numbers), messages.size)


Row = tuple[int, object, bytes, bytes, bool, bytes | None]


def expected(some: list[Messages]) -> dict[int, list[Row]]:
    """What each queue is to get, worked out message by message."""
    rows: dict[int, list[Row]] = {queue_id: [] for queue_id in QUEUES}
    for each in some:
        columns = zip(each.uids, each.facts, each.properties, each.bodies, each.targets, each.numbers, strict=True)
        for uid, its_facts, properties, body, targets, number in columns:
            for queue_id in targets:
                letter = pack("<QQ", 9, number) if each.letters and number in each.letters else None
                rows[queue_id].append((uid, its_facts, properties, body, number in each.immediate, letter))
    return rows


def arrived(batch: bytes | Parts) -> dict[int, list[Row]]:
    """What each queue gets of a batch."""
    its = Columns(*decoded(batch if isinstance(batch, bytes) else b"".join(batch)), Interned())
    rows: dict[int, list[Row]] = {queue_id: [] for queue_id in QUEUES}
    for queue_id, indexes in its.queues:
        for some in its.alike(indexes):
            for at in some.indexes:
                row = its.uids[at], its.facts[at], its.properties[at], its.bodies[at], some.immediate
                rows[queue_id].append((*row, its.letters[at] if its.letters else None))
    return rows


@given(st.lists(mixtures(), min_size=1, max_size=4))
def test_a_batch_of_several_publishers(some: list[Messages]) -> None:
    """Each queue finds its messages in the order in which they were published, with all that is known of them."""
    assert arrived(encode([attempt(each) for each in some], 1, 0)) == expected(some)


@given(mixtures(), st.data())
def test_what_comes_again(messages: Messages, data: st.DataObject) -> None:
    """Of an attempt, exactly the messages that a queue refused are sent again, unchanged."""
    whole = attempt(messages)
    queue_id = data.draw(st.sampled_from(sorted(whole.queues)))
    its = list(whole.queues[queue_id])
    refused = sorted(data.draw(st.sets(st.sampled_from(its), min_size=1)))
    refusal = pb.Refusal(queue_id=queue_id, **choice(refused))
    [(found, indexes)] = Refusals([whole]).parts(refusal)
    assert (found, list(indexes)) == (whole, refused)
    part = whole.part({queue_id: condensed(refused)})
    assert list(part.messages.numbers) == refused
    was = dict(zip(its, expected([messages])[queue_id], strict=True))
    assert arrived(encode([part], 1, 0))[queue_id] == [was[at] for at in refused]


@given(st.lists(mixtures(), min_size=1, max_size=4), st.data())
def test_a_refusal_finds_its_publishers(some: list[Messages], data: st.DataObject) -> None:
    """A batch's indexes lead back to each publisher's own, for the messages that the queue was to have."""
    attempts = [attempt(each) for each in some]
    queue_id = data.draw(st.sampled_from(QUEUES))
    count = sum(map(len, some))
    refused = sorted(data.draw(st.sets(st.integers(0, count - 1))))
    refusal = pb.Refusal(queue_id=queue_id, **choice(refused))
    found = [(id(one), at) for one, indexes in Refusals(attempts).parts(refusal) for at in indexes]
    every = [(one, at) for one in attempts for at in range(len(one.messages))]
    concerned = [every[at] for at in refused]
    assert found == [(id(one), at) for one, at in concerned if queue_id in one.messages.targets[at]]


@given(mixtures(), st.sampled_from([10, 2 << 20, 5 << 20]))
def test_frames(messages: Messages, size: int) -> None:
    """What is too much for a frame goes in several, in order; only a message that is too large itself makes one so."""
    messages = replace(messages, bodies=[bytes(size) if at % 3 == 0 else b"x" for at in range(len(messages))])
    pieces = list(frames_of(messages))
    assert [uid for piece in pieces for uid in piece.uids] == list(messages.uids)
    assert [number for piece in pieces for number in piece.numbers] == list(messages.numbers)
    assert all(piece.size <= 4 << 20 or len(piece) == 1 for piece in pieces)
