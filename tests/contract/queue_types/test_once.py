"""What comes with the key of a message that came lately is taken for that message."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any
from unittest.mock import Mock

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.common import plugins
from services.common.message.amqp_0_9 import compose
from services.queue.machine.entrance import Entrance
from services.queue.machine.features import keys
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.conftest import NEEDS
from tests.support.messages import facts
from tests.support.queue_machine import Machine, Make

WINDOW = 100
FACTS = facts("amq.direct")


def said(key: str | None, header: object = None) -> bytes:
    """Properties with a message id, and perhaps with the header."""
    texts = {} if key is None else {"message-id": key}
    return compose(texts, {} if header is None else {keys.HEADER: header}, persistent=False, priority=0)


@pytest.fixture
def once(make: Make) -> Make:
    return partial(make, message_deduplication=True, cache_ttl=WINDOW)


def publish(machine: Machine, *names: str | None, now: int = 0, **more: Any) -> list[tuple[int, int, int]]:
    """A message with each of these ids; gives those that were not taken."""
    properties = [said(name) for name in names]
    return machine.publish_mixed([more.pop("facts", FACTS)] * len(names), properties=properties, now=now, **more)


def test_the_second_is_the_first(once: Make) -> None:
    """Though the first has gone, in the same batch or later; what has no id is nobody's."""
    machine = once()
    machine.consumer(settled=True)
    assert publish(machine, "a", None, "a", "b", None) == [(2, 1, pb.NONE)]
    assert publish(machine, "b", "c") == [(0, 1, pb.NONE)]
    assert machine.link.uids() == [1, 2, 4, 5, 7]


def test_its_header_goes_before_its_id(once: Make) -> None:
    """RabbitMQ's plug-in has the header, of any type; an id of the same text is another key."""
    machine = once()
    for key, header in (("a", 7), ("b", 7), ("a", 8), ("7", None)):
        machine.publish_mixed([FACTS], properties=[said(key, header)])
    machine.consumer()
    assert machine.link.uids() == [1, 3, 4]


def test_not_for_ever(once: Make) -> None:
    """A key is known for so long, and so many of them; the clock gives their memory back."""
    machine = once(cache_size=2)
    machine.consumer(settled=True)
    publish(machine, "a", now=0)
    assert publish(machine, "a", now=WINDOW - 1) == [(0, 1, pb.NONE)]
    assert publish(machine, "a", now=WINDOW) == []
    publish(machine, "b", "c", now=WINDOW)
    assert publish(machine, "a", now=WINDOW) == []
    assert machine.account.used > 0
    machine.queue.expire(machine.queue.deadline())
    assert machine.queue.deadline() == machine.account.used == 0


def test_what_was_refused_may_come_again(make: Make) -> None:
    """It was not taken: its publisher hears that, and of its second in the same batch."""
    machine = make(message_deduplication=True, max_length=1, overflow="reject-publish")
    assert publish(machine, "a", "b", "b") == [(1, 1, pb.OVERFLOW), (2, 1, pb.OVERFLOW)]
    machine.consumer(settled=True)
    assert publish(machine, "b", "a") == [(1, 1, pb.NONE)]
    assert machine.link.uids() == [1, 4]


def test_what_nobody_was_there_for(once: Make) -> None:
    """An immediate message that no consumer could take may come again."""
    machine = once()
    assert publish(machine, "a", immediate=True) == [(0, 1, pb.NO_CONSUMERS)]
    machine.consumer()
    assert publish(machine, "a", immediate=True) == []


def test_what_was_refused_takes_no_key_away(once: Make) -> None:
    """A persistent one may take the key of what is in memory alone; if it is refused, that one has its key still."""
    machine = once(durable=True)
    publish(machine, "a")
    before = machine.account.used
    assert publish(machine, "a", facts=FACTS._replace(persistent=True), immediate=True) == [(0, 1, pb.NO_CONSUMERS)]
    assert machine.account.used == before
    assert publish(machine, "a") == [(0, 1, pb.NONE)]
    assert publish(machine, "a", facts=FACTS._replace(persistent=True)) == []
    assert publish(machine, "a", facts=FACTS._replace(persistent=True)) == [(0, 1, pb.NONE)]


def test_other_queues_take_all(make: Make) -> None:
    """Without the argument."""
    machine = make()
    assert publish(machine, "a", "a") == []
    assert machine.queue.ready_count == 2


def test_a_deleted_queue_leaves_nothing(once: Make) -> None:
    """Neither in memory nor in the journal."""
    machine = once(durable=True)
    publish(machine, "a", "b", facts=FACTS._replace(persistent=True))
    [draft] = machine.contents[0].entries.values()
    assert len(draft.notes) == 2
    machine.queue.end(durable=True)
    assert machine.account.used == 0
    assert machine.draft.dequeues[draft.notes_id] == [0, 1]


def test_the_journal_forgets_what_is_over(once: Make) -> None:
    """What is transient is not in it."""
    machine = once(durable=True)
    publish(machine, "a", "b", facts=FACTS._replace(persistent=True))
    publish(machine, "c")
    assert [len(draft.notes) for each in machine.contents for draft in each.entries.values()] == [2]
    publish(machine, "a", now=WINDOW)
    [draft] = machine.contents[0].entries.values()
    assert machine.draft.dequeues[draft.notes_id] == [0, 1]
    assert [note.feature for note in machine.queue.features.unwritten()] == ["deduplication"]


def test_what_is_transient_does_not_stand_for_what_is_persistent(once: Make) -> None:
    """That would be confirmed with nothing on disk. The other way round it is a duplicate."""
    machine, persistent = once(durable=True), FACTS._replace(persistent=True)
    assert publish(machine, "a") == []
    assert publish(machine, "a", facts=persistent) == []
    assert publish(machine, "a", facts=persistent) == publish(machine, "a") == [(0, 1, pb.NONE)]


def test_what_was_not_taken_by_a_fault(once: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is told that it was: it may come again."""
    machine = once()
    with monkeypatch.context() as broken:
        broken.setattr(Entrance, "publish", Mock(side_effect=ZeroDivisionError))
        with pytest.raises(ZeroDivisionError):
            publish(machine, "a")
    assert publish(machine, "a") == []


def test_too_many_at_once(once: Make) -> None:
    """The clock goes on where a turn has ended."""
    machine = once(cache_size=2)
    machine.consumer(settled=True)
    publish(machine, *map(str, range(12_000)))
    while machine.queue.deadline() == 1:
        machine.queue.expire(0)
    assert machine.account.used == 2 * 400


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=1, max_size=5)),
        st.tuples(st.just("consume"), st.just(0)),
        st.tuples(st.just("wait"), st.integers(1, WINDOW)),
        st.tuples(st.just("look"), st.just(0)),
    ),
    max_size=40,
)


@pytest.mark.parametrize("kind", plugins.names("queue_types"))
@given(steps=STEPS, most=st.integers(1, 4), length=st.integers(1, 4))
def test_same_as_a_list(kind: str, steps: list[tuple[str, Any]], most: int, length: int) -> None:
    """In any history, a full queue's too, a message is taken unless one of the last few that were taken has its key."""
    limits = {"max_length": length, "overflow": "reject-publish"}
    machine = Machine(
        kind, message_deduplication=True, cache_ttl=WINDOW, cache_size=most, **limits, **NEEDS.get(kind, {})
    )
    seen, now, room = deque[tuple[str, int]](), 0, length
    for step, argument in steps:
        if step == "publish":
            expected: list[tuple[int, int]] = []
            for at, key in enumerate(argument):
                if key is not None and any(key == each and until > now for each, until in seen):
                    expected.append((at, pb.NONE))
                elif not room:
                    expected.append((at, pb.OVERFLOW))
                else:
                    room -= 1
                    if key is not None:
                        seen = deque(each for each in seen if each[0] != key)
                        seen.append((key, now + WINDOW))
            refused = publish(machine, *argument, now=now)
            assert [(first + at, why) for first, count, why in refused for at in range(count)] == expected
            seen = deque(seen, most)
        elif step == "wait":
            now += argument
        elif step == "look":
            machine.queue.expire(now)
        else:
            machine.queue.picking.purge()
            room = length
    machine.queue.picking.purge()
    machine.queue.end(durable=False)
    assert machine.account.used == 0
