"""A request of very many keys is looked at in portions, between which others have their turns and things change."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.gateway.routing.own import _Search
from services.gateway.routing.portions import WORDS
from services.gateway.vocabulary import Publish
from tests.support.messages import kind
from tests.support.others_turns import others_turns
from tests.support.topology_bench import Bench
from tests.unit.gateway.routing.test_own import in_step, told


@pytest.mark.parametrize(("through", "count"), [(False, 32 * WORDS), (True, 4 * WORDS)])
async def test_a_long_request_gives_others_their_turns(through: Any, count: Any) -> None:
    """It is not found at once; between its portions other requests are served. More keys fit where one look tells."""
    bench = Bench()
    bench.queue("q")
    bench.exchange("next", "fanout")
    bench.bind("next", "q", "")
    bench.bind("amq.topic", "next" if through else "q", "#", to_exchange=through)
    gateway = in_step(bench)
    request = Publish(1, [kind("amq.topic", f"{each}") for each in range(count)], [b""] * count, [b""] * count)
    assert gateway.own.find("/", request) is None
    gateway.own._known.clear()
    async with others_turns() as others:
        answer = await gateway.own.ask("/", request)
    assert answer
    assert len(answer.targets) == count
    assert others.count >= 3
    assert len(set(map(id, answer.targets))) == 1  # a column of equals is seen to be one


def test_new_keys_of_a_direct_exchange_are_found_at_once() -> None:
    """All of a read, though none came before: they are looked up, and nothing of them is remembered."""
    bench = Bench()
    keys = [f"{each}" for each in range(2 * WORDS)]
    for name in ("q", "r"):
        bench.queue(name)
        bench.bind("amq.direct", name, keys[0])
    for key in keys[1:]:
        bench.bind("amq.direct", "q", key)
    gateway = in_step(bench)
    request = Publish(1, [kind("amq.direct", key) for key in keys], [b""] * len(keys), [b""] * len(keys))
    found = gateway.own.find("/", request)
    assert found
    assert [len(targets) for targets in found[:2]] == [2, 1]
    assert len(set(map(id, found[1:]))) == 1
    assert not gateway.own._known
    assert not gateway.own._ends


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize("count", [3, 6])
def test_new_keys_that_lead_to_one_place(through: bool, count: int) -> None:
    """To a queue, or through an exchange, and whether messages have a key each or share some: all of them go there."""
    bench, keys = Bench(), [f"{each % 3}" for each in range(count)]
    bench.queue("q")
    bench.exchange("next", "fanout")
    bench.bind("next", "q", "")
    for key in set(keys):
        bench.bind("amq.direct", "next" if through else "q", key, to_exchange=through)
    kinds = {key: kind("amq.direct", key) for key in keys}
    request = Publish(1, [kinds[key] for key in keys], [b""] * count, [b""] * count)
    found = in_step(bench).own.find("/", request)
    assert found
    assert list(found) == [tuple(bench.route("amq.direct", "0").queue_ids)] * count


def test_what_is_bound_between_two_portions_leads_no_other_key_there() -> None:
    """A key that was unbound at first, and is bound when it is looked for, says nothing of unbound keys."""
    bench = Bench()
    bench.queue("q")
    bench.exchange("next", "fanout")
    bench.bind("amq.direct", "next", "far", to_exchange=True)
    gateway = in_step(bench)
    kinds = [kind("amq.direct", "far", more_keys=(".".join("k" * 4 * WORDS),)), kind("amq.direct", "k")]
    search = _Search(gateway.own, "/", Publish(1, kinds, [b"\x00\x00"] * 2, [b""] * 2))
    portions = search.portions()
    next(portions)
    bench.bind("amq.direct", "q", "k")
    told(bench, gateway)
    assert list(portions) == []
    assert [len(targets) for targets in search.targets()] == [0, 1]
    assert gateway.names(bench.topology, "amq.direct", "unbound") == set()
    assert gateway.names(bench.topology, "amq.direct", "k") == {"q"}


async def test_a_place_that_is_lost_meanwhile_ends_the_search() -> None:
    """Then a router is asked."""
    gateway = in_step(Bench())
    count = 16 * WORDS
    request = Publish(1, [kind("amq.topic", f"{each}") for each in range(count)], [b""] * count, [b""] * count)
    asking = asyncio.ensure_future(gateway.own.ask("/", request))
    await asyncio.sleep(0)
    gateway.placed = False
    assert await asking is None
