"""A queue whose policies say that it takes each message once, for a time."""

from __future__ import annotations

from typing import Any, Final

from services.queue.machine import turn
from services.queue.machine.entry import JournalPart
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.test_once import FACTS, WINDOW, publish, said
from tests.support.queue_machine import Machine, Make

SAID: Final[dict[str, Any]] = {"message-deduplication": True, "cache-ttl": WINDOW, "cache-size": 2}
PERSISTENT: Final = FACTS._replace(persistent=True)
DUPLICATE: Final = [(0, 1, pb.NONE)]


def test_as_the_policy_comes_and_goes(make: Make) -> None:
    """It counts for what is published from then on, and leaves nothing behind when it goes."""
    machine = make(durable=True)
    persistent = {"facts": PERSISTENT}
    publish(machine, "a", **persistent)
    machine.adopt(SAID)
    assert publish(machine, "a", **persistent) == []
    assert publish(machine, "a", **persistent) == DUPLICATE
    machine.adopt({})
    assert publish(machine, "a", **persistent) == []
    clock(machine)
    assert (list(machine.queue.features.unwritten()), machine.queue.features.size) == ([], 0)
    assert sum(map(len, machine.draft.dequeues.values())) == 1
    machine.adopt(SAID)
    assert publish(machine, "a", **persistent) == []


def clock(machine: Machine) -> int:
    """Until it has nothing to do at once; gives how often it looked."""
    looks = 0
    while machine.queue.deadline() == 1:
        machine.queue.expire(0)
        looks += 1
    return looks


def test_other_numbers(make: Make) -> None:
    """A shorter cache forgets the oldest, in turns; keys that are known are known as long as was said."""
    machine = make(message_deduplication=True)
    publish(machine, *map(str, range(2 * turn.AT_ONCE + 2)))
    machine.adopt(SAID)
    assert clock(machine) == 2
    assert publish(machine, str(2 * turn.AT_ONCE + 1), now=WINDOW + 1) == DUPLICATE
    assert publish(machine, "0", now=WINDOW + 1) == []


def test_what_was_prepared_before(make: Make) -> None:
    """A transaction's messages are taken as the policies are when it is committed; no note is left of a wrong one."""
    machine = make(durable=True)
    machine.adopt(SAID)
    arrival = machine.arrival([PERSISTENT], [said("a")])
    arrival.place = machine.queue.transacted.place(1)
    arrival.parts = (JournalPart(1, 0),)
    machine.queue.transacted.stage(arrival, 0)
    assert arrival.notes
    [place] = arrival.notes
    machine.adopt({})
    machine.queue.publish(arrival, 0)
    assert place is not None
    assert machine.draft.dequeues == {place.batch: [place.at]}
    later = machine.arrival([PERSISTENT], [said("b")])
    later.place = machine.queue.transacted.place(1)
    machine.queue.transacted.stage(later, 0)
    machine.adopt(SAID)
    machine.queue.publish(later, 0)
    assert not any(draft.notes for draft in later.content.entries.values())
    assert publish(machine, "b") == DUPLICATE
