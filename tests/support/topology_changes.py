"""Changes of a topology, any of them, for property tests: names and keys are few, so that they meet."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from services.common.message import arguments
from services.rpc.router_pb2 import Bind, DeclareQueue
from tests.support.topology_bench import request

QUEUES = ["q1", "q2", ""]
EXCHANGES = ["d", "f", "t", "h", "amq.direct", "amq.match", ""]
KEYS = ["k", "k.l", "q1", ""]
HEADERS = {"a": 1}
_TYPES = {"d": "direct", "f": "fanout", "t": "topic", "h": "headers", "amq.direct": "direct", "amq.match": "headers"}

_selects = [{"x-filter-jms-selector": f"a = {number}"} for number in (1, 2)]
_tables = st.sampled_from(
    [{}, {}, {}, {"a": 1}, {"a": 2}, *_selects, {"a": 1, **_selects[1]}, {"x-match": "any", **_selects[0]}]
)
_flag = st.booleans()
_declare_queue = st.builds(
    lambda name, durable, exclusive: request("declare_queue", name=name, durable=durable, exclusive=exclusive),
    st.sampled_from(QUEUES),
    _flag,
    _flag,
)
_replace_queue = st.builds(
    lambda name, durable, source, key, table: request(
        "replace_queue",
        queue=DeclareQueue(name=name, durable=durable),
        bind=Bind(source=source, routing_key=key, arguments=arguments.dump(table)),
    ),
    st.sampled_from(["q1", "q2"]),
    _flag,
    st.sampled_from(EXCHANGES),
    st.sampled_from(KEYS),
    _tables,
)
_declare_exchange = st.builds(
    lambda name, durable, auto_delete, alternate: request(
        "declare_exchange",
        name=name,
        type=_TYPES.get(name, "direct"),
        durable=durable,
        auto_delete=auto_delete,
        arguments={} if alternate is None else {"alternate-exchange": alternate},
    ),
    st.sampled_from(EXCHANGES),
    _flag,
    _flag,
    st.none() | st.sampled_from(EXCHANGES),
)


def _bindings(kind: Any) -> Any:
    def build(source: Any, destination: Any, key: Any, table: Any) -> Any:
        to_exchange = destination in EXCHANGES
        fields = {"source": source, "destination": destination, "to_exchange": to_exchange, "routing_key": key}
        return request(kind, **fields, arguments=table)

    destinations = st.sampled_from(["q1", "q2", "d", "f", "t", "h"])
    return st.builds(build, st.sampled_from(EXCHANGES), destinations, st.sampled_from([*KEYS, "k.*", "#"]), _tables)


_POLICIES = st.sampled_from(["p1", "p2"])
_set_policy = st.builds(
    lambda name, pattern, length, operator: request(
        "set_policy",
        name=name,
        pattern=pattern,
        definition=b'{"max-length": %d}' % length,
        apply_to="all",
        operator=operator,
    ),
    _POLICIES,
    st.sampled_from(["1", "q", ""]),
    st.integers(1, 3),
    _flag,
)

bindings = st.one_of(_bindings("bind"), _bindings("bind"), _bindings("unbind"))
something = [
    request("create_virtual_host", name="/"),
    *(request("declare_queue", name=name) for name in QUEUES if name),
    *(request("declare_exchange", name=name, type=_TYPES[name]) for name in "dfth"),
]
"""With which most of the others are possible."""

changes = st.one_of(
    _declare_queue,
    _replace_queue,
    _declare_exchange,
    _bindings("bind"),
    _bindings("bind"),
    _bindings("unbind"),
    st.builds(lambda name: request("delete_queue", name=name), st.sampled_from(QUEUES)),
    st.builds(lambda name: request("delete_exchange", name=name), st.sampled_from(EXCHANGES)),
    st.builds(lambda name: request("create_virtual_host", name=name), st.sampled_from(["/", "v"])),
    st.builds(lambda name: request("delete_virtual_host", name=name), st.sampled_from(["/", "v"])),
    st.just(request("close_connection")),
    _set_policy,
    st.builds(lambda name, operator: request("clear_policy", name=name, operator=operator), _POLICIES, _flag),
)
