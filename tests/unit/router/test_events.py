from __future__ import annotations

from services.common.bus import facts
from services.common.bus.facts import Facts
from services.router.events import tell
from tests.support.topology_bench import Bench


class _Heard(list[Facts]):
    def publish(self, one: Facts) -> None:
        self.append(one)


def _told(bench: Bench) -> list[Facts]:
    heard = _Heard()
    for happened in bench.effects.happened:
        tell(heard, happened)
    return list(heard)


def test_declared_and_bound() -> None:
    """What a client declares is told with its properties, and a binding with the names of both ends."""
    bench = Bench()
    assert _told(bench) == [facts.VirtualHostCreated(virtual_host="/")]
    queue = bench.queue("q", durable=True)
    made = {"queue_id": queue.id, "partition": queue.partition, "type": "classic", "exclusive_to": ""}
    flags = {"durable": True, "auto_delete": False}
    assert _told(bench) == [facts.QueueCreated(virtual_host="/", queue="q", **made, **flags)]
    bench.exchange("x", "topic", auto_delete=True)
    properties = {"type": "topic", "durable": False, "auto_delete": True, "internal": False}
    assert _told(bench) == [facts.ExchangeCreated(virtual_host="/", exchange="x", **properties)]
    bench.bind("x", "q", "a.#", arguments={"n": 1})
    bound = _told(bench)[0]
    assert isinstance(bound, facts.BindingCreated)
    assert (bound.source, bound.destination, bound.to_exchange, bound.routing_key) == ("x", "q", False, "a.#")
    assert '"n"' in bound.arguments


def test_declared_again() -> None:
    """To declare what exists already is no event."""
    bench = Bench()
    bench.queue("q")
    bench.queue("q")
    assert _told(bench) == []


def test_what_goes_along() -> None:
    """A queue's end is told after that of its bindings, and of an auto-delete exchange that had no other."""
    bench = Bench()
    bench.queue("q")
    bench.exchange("x", auto_delete=True)
    bench.bind("x", "q", "k")
    bench.do("delete_queue", name="q")
    assert [told.kind for told in _told(bench)] == ["binding.deleted", "exchange.deleted", "queue.deleted"]
    assert _told(bench)[0].destination == "q"
