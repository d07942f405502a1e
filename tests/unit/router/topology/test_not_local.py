"""A router says which queues are spared what their consumers publish, though it knows no consumers."""

from __future__ import annotations

from services.router.evaluate import evaluate
from services.rpc.router_pb2 import Message
from tests.support.topology_bench import Bench


async def test_of_each_message(bench: Bench) -> None:
    """Of those that it goes to by such bindings alone."""
    spared, both, other = (bench.queue(name).id for name in ("spared", "both", "other"))
    for name in ("spared", "both"):
        bench.bind("amq.fanout", name, arguments={"x-qpid-no-local": True})
    for name in ("both", "other"):
        bench.bind("amq.fanout", name)
    [routed] = await evaluate(bench.topology, [Message(virtual_host="/", exchange="amq.fanout")])
    assert set(routed.queue_ids) == {spared, both, other}
    assert (list(routed.not_local), routed.needs_headers) == ([spared], False)
