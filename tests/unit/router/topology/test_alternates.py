"""Broker-J's arguments for where a queue's dead letters go, with what is there when it is declared."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from services.common.errors import PreconditionFailed, ResourceLocked
from services.common.message import arguments
from services.common.topology.records import queue_key, queue_record
from tests.support.topology_bench import Bench

DLQ = {"x-qpid-dlq-enabled": True}
TO_DLQ = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q_DLQ", "expiryPolicy": "DELETE"}


def _kept(queue: Any) -> dict[str, Any]:
    return arguments.load(queue.arguments)


def _binding(destination: Any, **attributes: Any) -> dict[str, Any]:
    return {"alternateBinding": {"destination": destination, **({"attributes": attributes} if attributes else {})}}


@pytest.mark.parametrize("value", [True, "true", "True"])
def test_a_dead_letter_queue_is_made(bench: Bench, value: object) -> None:
    """By its name, durable, nobody's, without one of its own; dead letters go there, but for what expires."""
    queue = bench.queue("q", arguments={"x-qpid-dlq-enabled": value, "x-mine": 1})
    assert _kept(queue) == {"x-mine": 1, **TO_DLQ}
    made = bench.queue("q_DLQ", durable=True)
    assert (made.durable, _kept(made), made.exclusive_to, made.auto_delete) == (True, {}, "", False)
    assert bench.names("", "q_DLQ") == {"q_DLQ"}


def test_of_a_queue_without_a_name(bench: Bench) -> None:
    """It goes by the name that the router makes."""
    queue = bench.queue("", arguments=DLQ)
    assert bench.names("", f"{queue.name}_DLQ") == {f"{queue.name}_DLQ"}


@pytest.mark.parametrize("life", [{"exclusive": True}, {"auto_delete": True}])
def test_of_a_queue_that_goes_by_itself(bench: Bench, life: dict[str, bool]) -> None:
    """It has none, which would stay; an alternate binding it may have. Declared again it is the same."""
    queue = bench.queue("q", arguments={**DLQ, "x-mine": 1}, **life)
    assert _kept(queue) == {"x-mine": 1}
    assert bench.queue("q", arguments={**DLQ, "x-mine": 1}, **life) == queue
    assert len(bench.topology.queues) == 1
    bench.queue("p", arguments={**DLQ, **_binding("amq.fanout")}, **life)
    assert len(bench.topology.queues) == 2


def test_both_are_one_change(bench: Bench) -> None:
    """They are on record, and told, together."""
    assert bench.do("declare_queue", name="q", arguments=DLQ).created
    assert sorted(queue.name for queue in bench.effects.news.queues.values()) == ["q", "q_DLQ"]
    assert len(bench.effects.records) == 2


@pytest.mark.parametrize("value", [False, "false"])
def test_not_wanted(bench: Bench, value: object) -> None:
    """Then nothing is said."""
    assert _kept(bench.queue("q", arguments={"x-qpid-dlq-enabled": value})) == {}
    assert len(bench.topology.queues) == 1
    assert _kept(bench.queue("p", arguments={"alternateBinding": {}})) == {}


def test_what_is_there_already_is_used(bench: Bench) -> None:
    """A queue of that name, or an exchange, which goes before it as Broker-J has it."""
    there = bench.queue("q_DLQ", durable=True, arguments={"x-max-length": 5})
    bench.queue("q", durable=True, arguments=DLQ)
    assert bench.topology.queues[there.id] == there
    bench.exchange("p_DLQ", "fanout", durable=True)
    assert _kept(bench.queue("p", arguments=DLQ))["x-dead-letter-exchange"] == "p_DLQ"
    assert {queue.name for queue in bench.topology.queues.values()} == {"q_DLQ", "q", "p"}


def test_declared_again(bench: Bench) -> None:
    """By the same argument, or others that say the same, it is the same queue; a DLQ that has gone is made again."""
    queue = bench.queue("q", durable=True, arguments=DLQ)
    assert bench.queue("q", durable=True, arguments=_binding("q_DLQ")) == queue
    assert bench.queue("q", durable=True, arguments=TO_DLQ) == queue
    for other in ({}, {"x-qpid-dlq-enabled": False}, _binding("amq.fanout")):
        with pytest.raises(PreconditionFailed, match="inequivalent arg"):
            bench.queue("q", durable=True, arguments=other)
    bench.do("delete_queue", name="q_DLQ")
    assert not bench.names("", "q_DLQ")
    assert bench.queue("q", durable=True, arguments=DLQ) == queue
    assert bench.names("", "q_DLQ")


def test_an_exchange_of_the_name_comes_later(bench: Bench) -> None:
    """The queue, declared again, is the same: what was meant counts, and its letters go where they went."""
    queue = bench.queue("q", arguments=DLQ)
    bench.queue("dead")
    other = bench.queue("p", arguments=_binding("dead"))
    for name in ("q_DLQ", "dead"):
        bench.exchange(name)
    assert bench.queue("q", arguments=DLQ) == queue
    assert bench.queue("p", arguments=_binding("dead")) == other


def test_both_name_one_queue(bench: Bench) -> None:
    """Which the one argument makes: then it is there for the other."""
    bench.queue("q", arguments={**DLQ, **_binding("q_DLQ")})
    assert bench.names("", "q_DLQ")


def test_deleted(bench: Bench) -> None:
    """The DLQ stays, with the letters, when its queue goes."""
    bench.queue("q", arguments=DLQ)
    bench.do("delete_queue", name="q")
    assert bench.names("", "q_DLQ")


def test_a_queue_of_a_former_release(bench: Bench) -> None:
    """It was kept as it was said, and nothing was meant: nor is it when its client declares it again."""
    told = {"x-max-length": 5, **DLQ}
    queue = replace(bench.queue("q", arguments={"x-max-length": 5}), arguments=arguments.dump(told))
    bench.topology.restore(
        (*key, record.value) for key, record in (*bench.topology.all_records(), (queue_key(queue), queue_record(queue)))
    )
    again = bench.queue("q", arguments={"x-max-length": 5, **DLQ})
    assert again.id == queue.id
    assert len(bench.topology.queues) == 1


@pytest.mark.parametrize("as_json", [False, True])
def test_an_alternate_binding(bench: Bench, as_json: bool) -> None:
    """To an exchange, with a key if it is said, or to a queue; as a map, or JSON."""
    bench.queue("dead")
    for name, told, kept in [
        ("a", _binding("amq.fanout"), {"x-dead-letter-exchange": "amq.fanout"}),
        (
            "b",
            _binding("amq.direct", routingKey="k"),
            {"x-dead-letter-exchange": "amq.direct", "x-dead-letter-routing-key": "k"},
        ),
        ("c", _binding("dead"), {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}),
    ]:
        table = {"alternateBinding": json.dumps(told["alternateBinding"])} if as_json else told
        queue = bench.queue(name, arguments=table)
        assert _kept(queue) == {**kept, "expiryPolicy": "DELETE"}
        assert bench.queue(name, arguments=table) == queue


def test_its_destination_has_gone(bench: Bench) -> None:
    """The queue is declared again as before: its letters go nowhere, as in RabbitMQ."""
    bench.exchange("dlx")
    bench.queue("dead")
    queues = []
    for name, to in (("a", "dlx"), ("b", "dead")):
        queues.append((name, _binding(to), bench.queue(name, arguments=_binding(to))))
    bench.do("delete_exchange", name="dlx")
    bench.do("delete_queue", name="dead")
    for name, told, queue in queues:
        assert bench.queue(name, arguments=told) == queue


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"x-qpid-dlq-enabled": 1}, "invalid arg 'x-qpid-dlq-enabled' .*: must be true or false, not 1"),
        ({"x-qpid-dlq-enabled": "yes"}, "'x-qpid-dlq-enabled' .*: must be true or false, not 'yes'"),
        ({"alternateBinding": 5}, "'alternateBinding' .*: must be a map with a destination, or that as JSON, not int"),
        ({"alternateBinding": "dead"}, "'alternateBinding' .*: must be a map with a destination, or that as JSON, not"),
        ({"alternateBinding": "[" * 100_000}, "'alternateBinding' .*: must be a map with a destination"),
        ({"alternateBinding": {"attributes": {}}}, "'alternateBinding' .*: must be a map with a destination"),
        (_binding(""), "'alternateBinding' .*: must be a map with a destination"),
        (_binding(5), "'alternateBinding' .*: must be a map with a destination"),
        (
            {"alternateBinding": '{"destination": "\\ud800"}'},
            "has a destination that must be text, of whole characters",
        ),
        (_binding("x" * 256), "has a destination that must be no longer than 255 bytes"),
        (_binding("amq.topic", routingKey=5), "has a routingKey that must be text, not int"),
        (_binding("amq.topic", key="k"), "'alternateBinding' .*: has no 'key'"),
        (
            {"alternateBinding": {"destination": "amq.topic", "attributes": 5}},
            "has attributes that are no map, but int",
        ),
        (_binding("nothing"), "'alternateBinding' .*: names 'nothing', which is not there"),
        (_binding("q"), "'alternateBinding' .*: must name another destination than the queue itself"),
        (_binding("fleeting"), "'alternateBinding' .*: leads to 'fleeting', which is not durable, as the queue is"),
        ({**DLQ, **_binding("amq.topic")}, "'x-qpid-dlq-enabled' .*: says something else than 'alternateBinding'"),
        (
            {**DLQ, "x-dead-letter-exchange": "e", "expiryPolicy": "DELETE"},
            "'x-qpid-dlq-enabled' .*: says something else than 'x-dead-letter-exchange'",
        ),
        ({**DLQ, "alternateExchange": "e"}, "'x-qpid-dlq-enabled' .*: says something else than 'alternateExchange'"),
        (
            {**_binding("amq.topic"), "alternateExchange": "amq.direct"},
            "'alternateBinding' .*: says something else than 'alternateExchange'",
        ),
        (
            {**_binding("amq.topic"), "x-dead-letter-exchange": "amq.direct"},
            "'alternateBinding' .*: says something else than 'x-dead-letter-exchange'",
        ),
        (
            {**_binding("amq.topic"), "x-dead-letter-exchange": "amq.topic"},
            "'alternateBinding' .*: has another 'expiryPolicy' in mind than 'x-dead-letter-exchange': say which",
        ),
        (
            {**DLQ, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "k", "expiryPolicy": "DELETE"},
            "'x-qpid-dlq-enabled' .*: says something else than 'x-dead-letter-routing-key'",
        ),
    ],
)
def test_what_is_refused(bench: Bench, told: dict[str, Any], why: str) -> None:
    """What is no value, leads nowhere, or contradicts what is said by another name; nothing is made."""
    bench.queue("fleeting")
    with pytest.raises(PreconditionFailed, match=why):
        bench.queue("q", durable=True, arguments=told)
    assert len(bench.topology.queues) == 1


def test_together_with_names_that_say_the_same(bench: Bench) -> None:
    """No contradiction; by which exchange and by which key may be said apart."""
    policy = {"expiryPolicy": "ROUTE_TO_ALTERNATE"}
    both = {**_binding("amq.topic"), "x-dead-letter-exchange": "amq.topic", "x-dead-letter-routing-key": "k", **policy}
    kept = _kept(bench.queue("q", arguments=both))
    assert kept == {"x-dead-letter-exchange": "amq.topic", "x-dead-letter-routing-key": "k", **policy}
    assert _kept(bench.queue("p", arguments={**DLQ, **policy}))["expiryPolicy"] == "ROUTE_TO_ALTERNATE"


def test_a_name_that_leaves_no_room(bench: Bench) -> None:
    """The DLQ's has to fit, too."""
    with pytest.raises(PreconditionFailed, match="makes a queue whose name must be no longer than 255 bytes"):
        bench.queue("q" * 252, arguments=DLQ)


def test_no_room_for_both() -> None:
    """Where a virtual host may have one more queue, neither is made."""
    bench = Bench(lambda _: 2)
    bench.queue("p")
    with pytest.raises(PreconditionFailed, match=r"cannot declare queue 'q_DLQ': queue limit in vhost '/' \(2\)"):
        bench.queue("q", arguments=DLQ)
    assert len(bench.topology.queues) == 1


def test_no_room_for_a_dlq_that_has_gone() -> None:
    """The queue is there all the same, and is declared again."""
    bench = Bench(lambda _: 2)
    queue = bench.queue("q", arguments=DLQ)
    bench.do("delete_queue", name="q_DLQ")
    bench.queue("p")
    assert bench.queue("q", arguments=DLQ) == queue


def test_anothers_queue(bench: Bench) -> None:
    """What is another connection's alone is no place for dead letters."""
    bench.queue("q_DLQ", exclusive=True, durable=True)
    for told in (DLQ, _binding("q_DLQ")):
        with pytest.raises(ResourceLocked, match="'q_DLQ'"):
            bench.do("declare_queue", connection="c2", name="q", arguments=told)
