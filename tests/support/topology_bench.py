"""Short ways to change a topology and to ask it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from services.common import plugins
from services.common.message import arguments
from services.common.topology.message import OfHeaders
from services.router.topology.effects import Effects
from services.router.topology.kinds import Kinds
from services.router.topology.outcome import Outcome
from services.router.topology.topology import Topology
from services.rpc import router_pb2


def request(kind: Any, connection: Any = "c1", virtual_host: Any = "/", **fields: Any) -> router_pb2.ChangeRequest:
    """A ChangeRequest of one kind; `arguments` as a dict."""
    if "arguments" in fields:
        fields["arguments"] = arguments.dump(fields["arguments"])
    message = {
        "bind": router_pb2.Bind,
        "unbind": router_pb2.Bind,
        "set_policy": router_pb2.Policy,
        "clear_policy": router_pb2.PolicyKey,
    }.get(kind) or getattr(router_pb2, "".join(word.capitalize() for word in kind.split("_")))
    return router_pb2.ChangeRequest(virtual_host=virtual_host, connection=connection, **{kind: message(**fields)})


def new_topology(most_queues: Callable[[str], int | None] = lambda _: None) -> Topology:
    kinds = Kinds(
        {name: plugins.load("exchange_types", name) for name in plugins.names("exchange_types")},
        ("classic",),
        ("drop-head", "ring", "reject-publish", "reject-publish-dlx", "producer-flow-control"),
    )
    ids, names = count(1), count(1)
    return Topology(kinds, 64, lambda: next(ids), lambda: f"{next(names):022}", most_queues)


class Bench:
    """A topology with "/" and short ways to change it and to ask it."""

    def __init__(self, most_queues: Callable[[str], int | None] = lambda _: None) -> None:
        self.topology = new_topology(most_queues)
        self.effects = Effects()
        self.do("create_virtual_host", name="/")

    def do(self, kind: Any, connection: Any = "c1", virtual_host: Any = "/", **fields: Any) -> Outcome:
        self.effects = Effects()
        return self.topology.change(request(kind, connection, virtual_host, **fields), self.effects)

    def queue(self, name: Any, **fields: Any) -> Any:
        return self.do("declare_queue", name=name, **fields).queue

    def exchange(self, name: Any, kind: Any = "direct", **fields: Any) -> Outcome:
        return self.do("declare_exchange", **({"name": name, "type": kind} | fields))

    def bind(self, source: Any, destination: Any, key: Any = "", **fields: Any) -> Outcome:
        return self.do("bind", source=source, destination=destination, routing_key=key, **fields)

    def route(self, exchange: Any, key: Any = "", headers: Any = None, more_keys: Any = ()) -> Any:
        return self.topology.route("/", exchange, key, OfHeaders(headers or {}), more_keys)

    def names(self, exchange: Any, key: Any = "", headers: Any = None, more_keys: Any = ()) -> set[str]:
        found = self.route(exchange, key, headers, more_keys).queue_ids
        return {self.topology.queues[each].name for each in found}
