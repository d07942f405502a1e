"""Counts of queues for management: in portions, between which messages go on."""

from __future__ import annotations

from services.queue.counting import AT_ONCE, portions
from tests.support.queue_machine import Make


def test_a_turn_is_short_whatever_there_is(make: Make) -> None:
    """Of a queue with thousands of consumers as of thousands of queues; each is told once."""
    machine, waiting = make(), make()
    tags = {machine.consumer(messages=0, tag=f"c{number}").tag for number in range(3 * AT_ONCE)}
    waiting.publish(2)
    told = list(portions({1: machine.queue, **dict.fromkeys(range(2, 2 * AT_ONCE), waiting.queue)}))
    assert max(len(each.queue_ids) + len(each.consumers) for each in told) <= AT_ONCE
    assert {consumer.tag for each in told for consumer in each.consumers} == tags
    assert sum(len(each.consumers) for each in told) == 3 * AT_ONCE
    assert sum(len(each.queue_ids) for each in told) == 2 * AT_ONCE - 1
    assert {*(count for each in told for count in each.ready)} == {0, 2}


def test_who_leaves_meanwhile(make: Make) -> None:
    """Consumers and queues that go between two turns trouble nobody."""
    machine, gone = make(), make()
    consumers = [machine.consumer(messages=0) for _ in range(2 * AT_ONCE)]
    queues = {1: machine.queue, 2: gone.queue}
    telling = portions(queues)
    next(telling)
    for each in consumers:
        machine.queue.detach(each, 0)
    del queues[2]
    assert sum(len(each.queue_ids) for each in telling) == 0
