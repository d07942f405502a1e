"""How much of what is claimed is done in one turn of the event loop, and what else it holds up."""

from __future__ import annotations

import pytest

from services.queue.host import Host
from services.queue.links.in_turns import InTurns
from tests.support.many_claims import FEW, MANY, holder, in_steps, waiting
from tests.support.queue_house import House


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return in_steps(monkeypatch)


@pytest.fixture
def turns(steps: list[int], monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """What was claimed or looked at in each turn."""
    done, some = list[list[int]](), InTurns._some

    def one_turn(self: InTurns) -> None:
        before = len(steps)
        some(self)
        done.append(steps[before:])

    monkeypatch.setattr(InTurns, "_some", one_turn)
    return done


@pytest.fixture
def host(house: House) -> Host:
    return house.queues["queue-1"]._host


async def test_a_turn_is_not_much(house: House, host: Host, turns: list[list[int]]) -> None:
    """What is claimed last is not looked for in the same turn."""
    queue_id, link, uids = await waiting(house)
    await link.send(attaches=[holder(queue_id, uids[:-1])])
    await link.until(lambda: turns and not host.claims)
    assert max(map(sum, turns)) <= FEW
    assert sum(map(sum, turns)) >= 2 * (MANY - 1)


async def test_little_behind_much(house: House, host: Host, turns: list[list[int]]) -> None:
    """What others hold a little of is claimed as one, not in a turn for each."""
    queue_id, link, uids = await waiting(house)
    few = [await house.declare(f"few-{number}") for number in range(5)]
    attaches = [holder(queue_id, uids[:-1]), *(holder(each, [uids[-1] + 1 + at]) for at, each in enumerate(few))]
    for number, attach in enumerate(attaches, 1):
        attach.consumer = number
    await link.send(attaches=attaches)
    await link.until(lambda: turns and not host.claims)
    assert sum(1 in each for each in turns) < len(few) - 1
