"""Selectors of bindings take their time, which is no other client's."""

from __future__ import annotations

from services.gateway.routing.portions import WORDS
from tests.support.messages import kind, published
from tests.support.others_turns import others_turns
from tests.support.topology_bench import Bench
from tests.unit.gateway.routing.test_own import in_step, publish


async def test_many_selectors_give_others_their_turns() -> None:
    """A message that is asked about many is a portion by itself; what was found is remembered."""
    bench = Bench()
    bench.queue("q")
    for number in range(WORDS):
        bench.bind("amq.fanout", "q", arguments={"x-filter-jms-selector": f"number = {number}"})
    gateway = in_step(bench)
    properties = [publish("amq.fanout", headers={"number": number}).properties[0] for number in (7, -1, 8)]
    request = published([b""] * 3, kind("amq.fanout", "k"), properties=properties)
    assert gateway.own.find("/", request) is None
    gateway.own.known().clear()
    async with others_turns() as others:
        answer = await gateway.own.ask("/", request)
    assert answer
    assert [len(targets) for targets in answer.targets] == [1, 0, 1]
    assert others.count >= 3
    assert gateway.own.find("/", request) == answer.targets
