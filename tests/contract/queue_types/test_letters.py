"""A second dead letter of an entry is taken for the first one, whoever sends it."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from services.common.errors import InternalError
from services.queue.machine.columns import Columns
from services.queue.machine.entrance import Entrance
from services.queue.machine.features import letters
from services.queue.machine.message import Interned
from services.rpc import queue_pb2 as pb
from tests.support.messages import facts
from tests.support.queue_machine import Machine, Make

SOURCE, OTHER = 7, 8


def send(machine: Machine, *of: tuple[int, int], now: int = 0, persistent: bool = False) -> list[tuple[int, int, int]]:
    """A letter of each of these entries; gives those that were not taken."""
    return machine.publish_mixed([facts("dlx", persistent=persistent)] * len(of), letters=of, now=now)


def places(machine: Machine) -> list[bool]:
    """Of each letter that is known, whether the journal is to know it too."""
    return [seen.place is not None for seen in machine.queue._admission._letters.window._seen.values()]


def test_the_second_is_the_first(make: Make) -> None:
    """Though the first has left the queue. A letter is one of an entry: of its queue, and of its uid."""
    machine = make()
    machine.consumer(settled=True)
    assert send(machine, (SOURCE, 1), (SOURCE, 2)) == []
    assert send(machine, (SOURCE, 2), (OTHER, 2), (0, 0), (0, 0), (SOURCE, 1)) == [(0, 1, pb.NONE), (4, 1, pb.NONE)]
    assert machine.link.uids() == [1, 2, 4, 5, 6]


def test_what_is_no_letter(make: Make) -> None:
    """Costs nothing, and leaves nothing."""
    machine = make()
    machine.publish(3)
    assert places(machine) == []
    assert machine.queue.deadline() == 0


def test_the_record_says_it(make: Make) -> None:
    """The second is dropped, as a duplicate."""
    machine = make()
    machine.queue._entries.record = record = Mock(on=True)
    send(machine, (SOURCE, 1))
    send(machine, (SOURCE, 1))
    record.dropped.assert_called_once_with(range(2, 3), "duplicate")


def test_what_was_refused_may_come_again(make: Make) -> None:
    """By a full queue, or because taking it failed."""
    machine = make(max_length=1, overflow="reject-publish")
    assert send(machine, (SOURCE, 1), (SOURCE, 2)) == [(1, 1, pb.OVERFLOW)]
    machine.consumer(settled=True)
    assert send(machine, (SOURCE, 1), (SOURCE, 2)) == [(0, 1, pb.NONE)]
    assert machine.link.uids() == [1, 4]


def test_what_could_not_be_taken(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody was told that it is here."""
    machine = make()
    with monkeypatch.context() as broken:
        broken.setattr(Entrance, "publish", Mock(side_effect=ZeroDivisionError))
        with pytest.raises(ZeroDivisionError):
            send(machine, (SOURCE, 1))
    assert send(machine, (SOURCE, 1)) == []


def test_a_full_queue_that_passes_on(make: Make) -> None:
    """It takes the letter by sending it on, in memory alone: once, and the journal does not say that it was here."""
    machine = make(durable=True, max_length=1, overflow="reject-publish-dlx", dead_letter_exchange="dlx")
    assert send(machine, (SOURCE, 1), (SOURCE, 2), persistent=True) == []
    assert places(machine) == [True, False]
    assert send(machine, (SOURCE, 2), persistent=True) == [(0, 1, pb.NONE)]
    assert machine.dead() == [(2, "maxlen")]


@pytest.mark.parametrize(("durable", "persistent"), [(True, True), (True, False), (False, True)])
def test_what_the_journal_is_told(make: Make, durable: bool, persistent: bool) -> None:
    """Of what is on disk itself, with it; the rest is for the next owner, who has it by a hand-over."""
    machine = make(durable=durable)
    send(machine, (SOURCE, 1), persistent=persistent)
    noted = durable and persistent
    assert [len(each.notes) for draft in machine.contents for each in draft.entries.values()] == [1] * noted
    assert len(list(machine.queue.features.unwritten())) == (not noted)


def test_the_next_owner_knows_them(make: Make) -> None:
    """Their time begins with it again: they are known while nobody serves the queue, however long that is."""
    machine = make()
    send(machine, (SOURCE, 1), now=1)
    notes = [(note, Mock()) for note in machine.queue.features.unwritten()]
    later: Machine = make()
    later.publish()
    later.queue._admission._letters.window._now = late = 10 * letters._SPAN.life_ms
    later.queue.features.recall(notes, [])
    assert send(later, (SOURCE, 1), now=late + letters._SPAN.life_ms - 1) == [(0, 1, pb.NONE)]


def test_not_for_ever(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many are known, each for so long; the clock gives their memory back."""
    monkeypatch.setattr(letters, "_SPAN", letters._SPAN._replace(most=2))
    machine = make()
    machine.consumer(settled=True)
    before = machine.account.used
    send(machine, (SOURCE, 1), (SOURCE, 2), (SOURCE, 3))
    assert len(places(machine)) == 2
    machine.queue.expire(letters._SPAN.life_ms)
    assert (places(machine), machine.account.used) == ([], before)


def test_a_batch_that_contradicts_itself() -> None:
    """It is refused, and nothing of it is taken."""
    said: dict[str, Any] = {"uids": [1], "bodies": [b""], "facts": [b""], "properties": [b""], "time_ms": 1}
    with pytest.raises(InternalError):
        Columns(pb.PublishBatch(**said, letter_uids=[1, 2], letter_queues=[1, 2]), [b""], Interned())
