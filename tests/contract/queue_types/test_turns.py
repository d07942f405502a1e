"""Whose turn it is, of few and of many consumers."""

from __future__ import annotations

from collections import deque
from random import Random

import pytest

from services.queue.machine.consumers import Consumer
from tests.support.queue_machine import PLENTY, Make


class Watched(Consumer):
    """Counts how often it is looked at."""

    __slots__ = ("looks",)

    @property  # type: ignore[misc]  # in place of the attribute
    def messages(self) -> int:  # type: ignore[override]
        self.looks = getattr(self, "looks", 0) + 1
        return Consumer.messages.__get__(self)  # type: ignore[attr-defined,no-any-return]

    @messages.setter
    def messages(self, value: int) -> None:
        Consumer.messages.__set__(self, value)  # type: ignore[attr-defined]


@pytest.mark.parametrize("waiting", [False, True])
def test_those_whose_turn_it_is_not(make: Make, *, waiting: bool) -> None:
    """A message for one of many consumers is no work for the others, whether it has waited in the queue or not."""
    machine = make()
    if waiting:
        machine.publish(2)
    many = [Watched(number, machine.link, messages=10, size=PLENTY) for number in range(50)]
    for consumer in many:
        machine.queue.attach(consumer, (), 0, again=False)
        consumer.looks = 0
    if waiting:
        machine.queue.dispatch(0)
    else:
        machine.publish(1)
        machine.publish(1)
    assert [handle for handle, _, _ in machine.link.taken()] == [0, 1]
    assert not any(consumer.looks for consumer in many[2:])


@pytest.mark.parametrize("seed", range(20))
def test_message_by_message(make: Make, seed: int) -> None:
    """Messages that come together are delivered as if one by one; a consumer that gets credit again is last in turn."""
    rng, machine = Random(seed), make()
    consumers = {each.handle: each for each in (machine.consumer(messages=rng.randint(1, 4)) for _ in range(7))}
    credit = {handle: consumer.messages for handle, consumer in consumers.items()}
    ring, waiting, uid = deque(consumers), deque[int](), 0
    expected: set[tuple[int, int]] = set()
    for _ in range(40):
        if rng.random() < 0.5:
            count = rng.randint(1, 12)
            machine.publish(count)
            waiting.extend(range(uid + 1, uid + count + 1))
            uid += count
        else:
            handle, more = rng.choice(list(consumers)), rng.randint(1, 4)
            if not credit[handle]:
                ring.append(handle)
            credit[handle] += more
            machine.queue.credit(consumers[handle], more, 0, 0)
        while waiting and ring:
            handle = ring.popleft()
            expected.add((handle, waiting.popleft()))
            credit[handle] -= 1
            if credit[handle]:
                ring.append(handle)
        assert {(handle, uid) for handle, uid, _ in machine.link.taken()} == expected
        expected.clear()
