from __future__ import annotations

from typing import Never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import NotFound, PreconditionFailed
from tests.support.topology_bench import Bench


class _Never:
    """It is never read."""

    def headers(self) -> Never:
        raise AssertionError("headers were decoded that nobody asked for")

    def look_up(self, name: str) -> Never:
        raise AssertionError(f"{name} was looked up, and nobody asked for it")


_never = _Never()


def test_bind_and_unbind(bench: Bench) -> None:
    """A binding routes until it is undone; doing either twice changes nothing."""
    bench.queue("q")
    assert bench.bind("amq.direct", "q", "k").created
    assert not bench.bind("amq.direct", "q", "k").created
    assert bench.names("amq.direct", "k") == {"q"}
    for _ in range(2):
        bench.do("unbind", source="amq.direct", destination="q", routing_key="k")
        assert bench.names("amq.direct", "k") == set()


def test_bind_needs_both_ends_and_unbind_neither(bench: Bench) -> None:
    """Binding what does not exist is not found; unbinding it is done already."""
    bench.queue("q")
    for source, destination, to_exchange, text in [
        ("none", "q", False, "no exchange 'none' in vhost '/'"),
        ("amq.direct", "none", False, "no queue 'none' in vhost '/'"),
        ("amq.direct", "none", True, "no exchange 'none' in vhost '/'"),
    ]:
        with pytest.raises(NotFound, match=text):
            bench.bind(source, destination, to_exchange=to_exchange)
        bench.do("unbind", source=source, destination=destination, to_exchange=to_exchange)


def test_unusable_arguments_bind_nothing(bench: Bench) -> None:
    """A binding that the exchange type refuses leaves no trace."""
    bench.queue("q")
    with pytest.raises(PreconditionFailed):
        bench.bind("amq.match", "q", arguments={"x-match": "most"})
    assert not bench.effects.records
    assert not bench.effects.news
    assert bench.names("amq.match") == set()


def test_default_exchange_follows_queues(bench: Bench) -> None:
    """Every queue is reachable by its name as long as it lives."""
    bench.queue("q")
    assert bench.names("", "q") == {"q"}
    bench.do("delete_queue", name="q")
    assert bench.names("", "q") == set()


def test_each_queue_once_through_cycles(bench: Bench) -> None:
    """Exchanges may be bound in circles; a queue that is met on several ways gets one copy."""
    bench.queue("q")
    for name in ("a", "b"):
        bench.exchange(name, "fanout")
        bench.bind(name, "q")
    bench.bind("a", "b", to_exchange=True)
    bench.bind("b", "a", to_exchange=True)
    assert bench.names("a") == bench.names("b") == {"q"}


def test_alternate_exchange(bench: Bench) -> None:
    """What matches nothing goes to the alternate, whose own alternate is next; circles and missing ones end it."""
    bench.queue("caught")
    bench.exchange("first", arguments={"alternate-exchange": "second"})
    assert bench.names("first", "k") == set()
    bench.exchange("second", arguments={"alternate-exchange": "third"})
    bench.exchange("third", "fanout", arguments={"alternate-exchange": "first"})
    assert bench.names("first", "k") == set()
    bench.bind("third", "caught")
    assert bench.names("first", "k") == {"caught"}
    bench.queue("q")
    bench.bind("first", "q", "k")
    assert bench.names("first", "k") == {"q"}


def test_needs_headers_only_where_they_are_looked_at(bench: Bench) -> None:
    """Headers are decoded, and said to matter, only for keys that reach a headers exchange."""
    bench.queue("q")
    bench.bind("amq.direct", "amq.match", "h", to_exchange=True)
    bench.bind("amq.direct", "q", "k")
    bench.bind("amq.match", "q", arguments={"a": 1})
    plain = bench.topology.route("/", "amq.direct", "k", _never)
    assert not plain.needs_headers
    decided = bench.route("amq.direct", "h", {"a": 1})
    assert decided.needs_headers
    assert decided.queue_ids == plain.queue_ids
    assert bench.route("amq.direct", "h", {"a": 2}).needs_headers


def test_many_keys(bench: Bench) -> None:
    """A message with many keys goes wherever one of them leads, each queue once."""
    for name in ("q", "r", "s"):
        bench.queue(name)
        bench.bind("amq.direct", name, name)
    bench.bind("amq.topic", "q", "a.*")
    bench.bind("amq.topic", "q", "*.b")
    assert bench.names("", "q", more_keys=["r", "none", "r"]) == {"q", "r"}
    assert bench.names("amq.direct", "none", more_keys=["s", "q"]) == {"q", "s"}
    assert bench.names("amq.topic", "a.c", more_keys=["a.b", "c.b"]) == {"q"}


def test_many_keys_and_an_alternate(bench: Bench) -> None:
    """The alternate exchange has what none of the keys leads anywhere with, also of an exchange on the way."""
    bench.queue("q")
    bench.queue("rest")
    bench.exchange("first", arguments={"alternate-exchange": "amq.fanout"})
    bench.bind("amq.fanout", "rest")
    bench.bind("first", "q", "k")
    bench.bind("amq.direct", "first", "up", to_exchange=True)
    for exchange, key in (("first", "none"), ("amq.direct", "up")):
        assert bench.names(exchange, key, more_keys=["k"]) == {"q"}
        assert bench.names(exchange, key, more_keys=["other"]) == {"rest"}


def test_an_exchange_looks_at_all_keys_whichever_led_there(bench: Bench) -> None:
    """As in RabbitMQ: the second exchange matches by a key that the first one has no binding for."""
    bench.queue("q")
    bench.exchange("second")
    bench.bind("amq.direct", "second", "to-second", to_exchange=True)
    bench.bind("second", "q", "k")
    assert bench.names("amq.direct", "to-second", more_keys=["k"]) == {"q"}
    assert bench.names("amq.direct", "to-second") == bench.names("amq.direct", "k") == set()


_STEPS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["a", "b", "q", "r"]), st.sampled_from(["k", "l", "*", "#"])),
    max_size=8,
)


@pytest.mark.fuzz
@given(_STEPS, st.lists(st.sampled_from("klmn"), max_size=3))
def test_routes_that_add_up(bindings: list[tuple[str, str, str]], more: list[str]) -> None:
    """Where no other exchange has a say in any key, a message with many goes where each goes alone."""
    bench = Bench()
    for queue in "qr":
        bench.queue(queue)
    for name, kind in (("a", "direct"), ("b", "topic"), ("c", "fanout"), ("d", "topic")):
        bench.exchange(name, kind, arguments={"alternate-exchange": "c"} if name == "d" else {})
    for source, destination, key in bindings:
        bench.bind(source, destination, key, to_exchange=destination in "ab")
    for exchange in "abcd":
        alone = [bench.route(exchange, key) for key in ("k", *more)]
        if not any(route.passed_on for route in alone):
            assert bench.route(exchange, "k", None, more).queue_ids == set().union(*(each.queue_ids for each in alone))


def test_unknown_and_internal(bench: Bench) -> None:
    """The answer says when there is no such exchange or virtual host, and when clients may not publish."""
    bench.exchange("i", internal=True)
    assert bench.route("i").internal
    assert bench.route("none").unknown_exchange
    assert bench.topology.route("none", "", "k", _never) is None


def test_forget_is_exact_where_it_can_be(bench: Bench) -> None:
    """One key is forgotten where one key is concerned, through every exchange that hands on to the changed one."""
    bench.queue("q")
    bench.bind("amq.direct", "q", "k")
    assert bench.effects.news.forget == {("/", "amq.direct"): {"k"}}
    bench.bind("amq.topic", "q", "a.*")
    assert bench.effects.news.forget == {("/", "amq.topic"): None}
    bench.exchange("up", arguments={"alternate-exchange": "amq.direct"})
    bench.bind("amq.fanout", "up", to_exchange=True)
    bench.bind("amq.direct", "q", "j")
    assert bench.effects.news.forget == {
        ("/", "amq.direct"): {"j"},
        ("/", "up"): {"j"},
        ("/", "amq.fanout"): {"j"},
    }


def test_forget_after_deleting_a_queue(bench: Bench) -> None:
    """Every way to a deleted queue is forgotten."""
    bench.queue("q")
    bench.bind("amq.direct", "q", "k")
    bench.bind("amq.fanout", "q")
    bench.do("delete_queue", name="q")
    assert bench.effects.news.forget == {("/", ""): {"q"}, ("/", "amq.direct"): {"k"}, ("/", "amq.fanout"): None}


def test_delete_by_id_is_of_one_incarnation(bench: Bench) -> None:
    """Deleting an id leaves a later queue of the same name alone."""
    old = bench.queue("q")
    bench.do("delete_queue", name="q")
    new = bench.queue("q")
    bench.do("delete_queue", queue_id=old.id)
    assert bench.topology.queues == {new.id: new}


def test_close_connection(bench: Bench) -> None:
    """Only the exclusive queues of the connection go."""
    bench.queue("mine", exclusive=True, durable=True)
    bench.queue("shared")
    bench.do("declare_queue", connection="c2", name="theirs", exclusive=True)
    bench.do("close_connection")
    assert {queue.name for queue in bench.topology.queues.values()} == {"shared", "theirs"}


def test_virtual_hosts(bench: Bench) -> None:
    """Virtual hosts share nothing; deleting one takes all of it, and either can be asked for twice."""
    bench.do("create_virtual_host", name="other")
    assert not bench.do("create_virtual_host", name="other").created
    bench.do("declare_queue", virtual_host="other", name="q")
    bench.do("bind", virtual_host="other", source="amq.direct", destination="amq.fanout", to_exchange=True)
    bench.do("declare_exchange", virtual_host="other", name="e", type="direct", durable=True)
    assert bench.names("", "q") == set()
    bench.do("delete_virtual_host", name="other")
    assert {key.kind for key, record in bench.effects.records.items() if record is None} == {
        "virtual_host",
        "queue",
        "exchange",
        "binding",
    }
    assert bench.effects.news.virtual_hosts == {"other": False}
    assert bench.topology.route("other", "", "q", _never) is None
    bench.do("delete_virtual_host", name="other")
    with pytest.raises(NotFound, match="no virtual host 'other'"):
        bench.do("declare_queue", virtual_host="other", name="q")
