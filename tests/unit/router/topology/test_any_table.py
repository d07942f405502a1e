"""The topology accepts or refuses any tables of clients, and recognises them again."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import BrokerError, SyntaxFault
from services.common.message import arguments, field_table
from services.router.topology.effects import Effects
from services.rpc import router_pb2
from tests.support.field_tables import NAMES, TABLES, typed
from tests.support.topology_bench import Bench, new_topology

_TYPES = ["direct", "fanout", "topic", "headers"]


def _restored(bench: Bench) -> Any:
    again = new_topology()
    records = [(key.kind, key.key, record.value) for key, record in bench.topology.all_records()]
    assert not again.restore(records)
    return again


@pytest.mark.fuzz
@given(TABLES, TABLES)
def test_any_table_is_declared_and_bound_and_comes_back(wire: bytes, other: bytes) -> None:
    """Queues, exchanges and bindings of every type keep their arguments with all types, on disk too, and can end."""
    table, headers = field_table.decode(wire), field_table.decode(other)
    bench = Bench()
    bench.queue("q")
    with suppress(BrokerError):
        bench.queue("with arguments", arguments=table)
    for kind in _TYPES:
        with suppress(BrokerError):
            bench.exchange(kind, kind, arguments=table)
        bench.exchange(f"{kind} 2", kind)
        with suppress(BrokerError):
            bench.bind(f"{kind} 2", "q", "k", arguments=table)
        bench.route(f"{kind} 2", "k", headers)
    again = _restored(bench)
    kept = [each.arguments for each in again.queues.values() if each.name == "with arguments"]
    host = again.virtual_hosts["/"]
    kept += [source.definition.arguments for name, source in host.sources.items() if name in _TYPES]
    kept += [
        binding.arguments for name, source in host.sources.items() if name.endswith(" 2") for binding in source.bindings
    ]
    for each in kept:
        assert typed(arguments.load(each)) == typed(table)
    bench.do("delete_queue", name="q")
    assert not any(source.bindings for name, source in bench.topology.virtual_hosts["/"].sources.items() if name)


@pytest.mark.fuzz
@given(TABLES)
def test_a_message_matches_the_binding_with_its_own_headers(wire: bytes) -> None:
    """A headers exchange finds equal values equal, of any type."""
    table = {name: value for name, value in field_table.decode(wire).items() if not name.startswith("x-")}
    bench = Bench()
    bench.queue("q")
    bench.bind("amq.headers", "q", arguments=table)
    assert bench.names("amq.headers", "", table) == {"q"}


_names = NAMES | st.sampled_from(["q", "e", "amq.direct", "amq.headers", "amq.gen-x", "", "ü" * 200])
_bytes = (
    TABLES.map(lambda wire: arguments.dump(field_table.decode(wire)))
    | st.binary(max_size=20)
    | st.sampled_from(
        [b'{"a":' * 5000, b"[]", b"null", b'{"!decimal": "x"}', b'{"x-match": {"!bytes": "AA=="}}', b"NaN"]
    )
)
_flags = {name: st.booleans() for name in ("durable", "auto_delete")}
_bind = st.builds(
    router_pb2.Bind, source=_names, destination=_names, to_exchange=st.booleans(), routing_key=_names, arguments=_bytes
)
_changes = st.one_of(
    st.builds(router_pb2.DeclareQueue, name=_names, arguments=_bytes, **_flags, exclusive=st.booleans())
    .map(lambda it: {"declare_queue": it}),
    st.builds(router_pb2.DeclareExchange, name=_names, type=st.sampled_from([*_TYPES, "x"]), arguments=_bytes, **_flags)
    .map(lambda it: {"declare_exchange": it}),
    _bind.map(lambda it: {"bind": it}),
    _bind.map(lambda it: {"unbind": it}),
    st.builds(router_pb2.DeleteQueue, name=_names, queue_id=st.integers(0, 5)).map(lambda it: {"delete_queue": it}),
    st.builds(router_pb2.DeleteExchange, name=_names, if_unused=st.booleans()).map(lambda it: {"delete_exchange": it}),
    st.just({}),
)  # fmt: skip


@pytest.mark.fuzz
@given(st.lists(_changes, max_size=12), _names, _bytes)
def test_any_requests_are_answered(changes: list[dict[str, Any]], key: str, headers: bytes) -> None:
    """No request raises anything but the protocol's errors, and what is left is what the records say."""
    bench = Bench()
    for change in changes:
        with suppress(BrokerError):
            bench.topology.change(router_pb2.ChangeRequest(virtual_host="/", connection="c", **change), Effects())
    with suppress(BrokerError):
        table = arguments.load(headers)
        for exchange in list(bench.topology.virtual_hosts["/"].sources):
            bench.route(exchange, key, table)
    again = _restored(bench)
    assert dict(again.all_records()) == dict(bench.topology.all_records())


@pytest.mark.parametrize("length", [400, 3000])
def test_a_chain_of_any_length_ends(length: int) -> None:
    """Deleting the queue at the end of a chain of auto-delete exchanges takes all of them, however many they are."""
    bench = Bench()
    bench.queue("q")
    for number in range(length):
        bench.exchange(f"e{number}", auto_delete=True, arguments={"alternate-exchange": f"e{number - 1}"})
        bench.bind(f"e{number}", f"e{number - 1}" if number else "q", "k", to_exchange=number > 0)
    assert bench.names(f"e{length - 1}", "k") == {"q"}
    bench.do("delete_queue", name="q")
    assert not [name for name in bench.topology.virtual_hosts["/"].sources if name.startswith("e")]
    assert sum(not happened.created for happened in bench.effects.happened) == 2 * length + 1


def test_a_circle_of_exchanges_ends() -> None:
    """Exchanges that are bound to each other in a circle go with the last binding from them, each once."""
    bench = Bench()
    for name in "abc":
        bench.exchange(name, "fanout", auto_delete=True)
    for source, destination in ("ab", "bc", "ca", "aa"):
        bench.bind(source, destination, to_exchange=True)
    bench.do("delete_exchange", name="b")
    assert {"a", "b", "c"} & bench.topology.virtual_hosts["/"].sources.keys() == {"a", "c"}
    bench.do("delete_exchange", name="a")
    assert not {"a", "b", "c"} & bench.topology.virtual_hosts["/"].sources.keys()


@pytest.mark.parametrize("argument", ["x-dead-letter-exchange", "x-dead-letter-routing-key"])
def test_what_can_never_be_written_is_refused(argument: str) -> None:
    """A key or a name that no consumer could be told is refused where it is declared; 255 bytes are enough."""
    bench = Bench()
    given_ = {"x-dead-letter-exchange": "", argument: "ü" * 127 + "x"}
    bench.queue("fits", arguments=given_)
    with pytest.raises(BrokerError, match="no longer than 255 bytes"):
        bench.queue("q", arguments=given_ | {argument: "ü" * 128})
    with pytest.raises(BrokerError, match="no longer than 255 bytes"):
        bench.do("declare_exchange", name="e", type="fanout", arguments={"alternate-exchange": "ü" * 128})


_NESTED: dict[str, Any] = {}
for _ in range(70):
    _NESTED = {"x": _NESTED}


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"x": 10**30}, "does not fit in 64 bits"),
        ({"x": Decimal("1E+400")}, "no decimal field"),
        ({"n" * 256: 1}, "longer than 255 bytes"),
        ({"x": datetime(1960, 1, 1, tzinfo=UTC)}, "before 1970"),
        (_NESTED, "nested deeper"),
    ],
)
def test_what_no_client_could_be_told(table: dict[str, Any], why: str) -> None:
    """Is in no argument, though HTTP can send it: a list of objects would break at it."""
    bench = Bench()
    bench.queue("q")
    with pytest.raises(SyntaxFault, match=why):
        bench.queue("odd", arguments=table)
    with pytest.raises(SyntaxFault, match=why):
        bench.exchange("odd", arguments=table)
    with pytest.raises(SyntaxFault, match=why):
        bench.bind("amq.topic", "q", arguments=table)
    assert not bench.do("unbind", source="amq.topic", destination="q", arguments=table).created
